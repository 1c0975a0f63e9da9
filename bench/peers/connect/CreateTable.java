import static org.apache.iceberg.types.Types.NestedField.optional;

import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.types.Types;

/** CreateTable WAREHOUSE: makes bench.events in a Hadoop catalog, with the columns that every arm writes. */
public class CreateTable {
  public static void main(String[] arguments) throws Exception {
    Schema schema = new Schema(
        optional(1, "event_id", Types.StringType.get()),
        optional(2, "device", Types.StringType.get()),
        optional(3, "value", Types.DoubleType.get()),
        optional(4, "kind", Types.StringType.get()),
        optional(5, "pad", Types.StringType.get()),
        optional(6, "topic", Types.StringType.get()),
        optional(7, "partition", Types.IntegerType.get()),
        optional(8, "offset", Types.LongType.get()),
        optional(9, "kafka_ts", Types.TimestampType.withZone()));
    try (HadoopCatalog catalog = new HadoopCatalog(new Configuration(), arguments[0])) {
      catalog.createNamespace(Namespace.of("bench"));
      catalog.createTable(TableIdentifier.of("bench", "events"), schema, PartitionSpec.unpartitioned(), null,
          Map.of("format-version", "2"));
    }
  }
}
