import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.TableFunction;
import org.apache.flink.types.Row;

/** Site and model of a device, from a CSV file without a header that is kept in memory; no row for an unknown device. */
@FunctionHint(output = @DataTypeHint("ROW<site STRING, model STRING>"))
public class DeviceFacts extends TableFunction<Row> {
  private final String file;
  private transient Map<String, Row> facts;

  public DeviceFacts(String file) {
    this.file = file;
  }

  @Override
  public void open(FunctionContext context) throws Exception {
    facts = new HashMap<>();
    for (String line : Files.readAllLines(Paths.get(file))) {
      String[] fields = line.split(",");
      facts.put(fields[0], Row.of(fields[1], fields[2]));
    }
  }

  public void eval(String device) {
    Row found = facts.get(device);
    if (found != null) {
      collect(found);
    }
  }
}
