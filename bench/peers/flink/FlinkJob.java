import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * FlinkJob BROKERS TOPIC FOLDER [key=value ...]: Kafka's JSON into the Iceberg table bench.events, in a mini cluster of this
 * process, as SQL, until the process is ended. Keys are Flink's own, but for bench.work (plain, encode, enrich or dirty: the same
 * as bench/work.py says; avro: records are Avro with the schemas of the registry at bench.registry) and bench.reference, a CSV
 * file of device, site and model.
 */
public class FlinkJob {
  public static void main(String[] arguments) throws Exception {
    String brokers = arguments[0], topic = arguments[1], folder = arguments[2];
    Map<String, String> settings = new LinkedHashMap<>();
    settings.put("parallelism.default", "2");
    settings.put("taskmanager.numberOfTaskSlots", "2");
    settings.put("execution.checkpointing.interval", "1 s");
    settings.put("execution.checkpointing.mode", "EXACTLY_ONCE");
    settings.put("state.backend.type", "hashmap");
    settings.put("execution.checkpointing.storage", "filesystem");
    settings.put("execution.checkpointing.dir", "file://" + folder + "/checkpoints");
    settings.put("execution.checkpointing.num-retained", "1");
    settings.put("restart-strategy.type", "none");
    settings.put("rest.bind-port", "0");
    for (int i = 3; i < arguments.length; i++) {
      String[] pair = arguments[i].split("=", 2);
      settings.put(pair[0], pair[1]);
    }
    String work = settings.getOrDefault("bench.work", "plain"), reference = settings.get("bench.reference");
    String format = "'format'='json'" + (work.equals("dirty") ? ",'json.ignore-parse-errors'='true'" : "");
    if (work.equals("avro")) {
      format = "'format'='avro-confluent','avro-confluent.url'='" + settings.get("bench.registry") + "'";
    }
    settings.keySet().removeIf(key -> key.startsWith("bench."));
    Configuration configuration = new Configuration();
    settings.forEach(configuration::setString);
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(settings.get("parallelism.default")), configuration);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    // Options of the table layer are read from its own configuration.
    settings.forEach((key, value) -> {
      if (key.startsWith("table.")) {
        tables.getConfig().set(key, value);
      }
    });
    tables.executeSql(
        "CREATE TEMPORARY TABLE records (event_id STRING, device STRING, `value` DOUBLE, kind STRING, pad STRING,"
            + " topic STRING METADATA VIRTUAL, `partition` INT METADATA VIRTUAL, `offset` BIGINT METADATA VIRTUAL,"
            + " kafka_ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL) WITH ('connector'='kafka','topic'='" + topic + "',"
            + "'properties.bootstrap.servers'='" + brokers + "','properties.group.id'='flink-" + topic + "',"
            + "'scan.startup.mode'='earliest-offset'," + format + ")");
    tables.executeSql(
        "CREATE CATALOG ice WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='" + folder + "/warehouse')");
    tables.executeSql("CREATE DATABASE IF NOT EXISTS ice.bench");
    String columns = "event_id STRING, device STRING, `value` DOUBLE, kind STRING, ";
    String chosen = "event_id, device, `value`, kind, ", from = " FROM records";
    if (work.equals("encode")) {
      columns += "part STRING, ";
      chosen = "event_id, SHA256(device), `value` * 1.8E0 + 32E0, UPPER(kind), SUBSTRING(event_id, 7, 6), ";
      from += " WHERE `value` > 36.9E0";
    } else if (work.equals("enrich")) {
      // A table in memory that each row is looked up in: a join of a stream with a table would keep every row as state.
      tables.createTemporarySystemFunction("device_facts", new DeviceFacts(reference));
      columns += "site STRING, model STRING, ";
      chosen += "site, model, ";
      from += " LEFT JOIN LATERAL TABLE(device_facts(device)) AS facts(site, model) ON TRUE";
    }
    tables.executeSql(
        "CREATE TABLE IF NOT EXISTS ice.bench.events (" + columns + "pad STRING,"
            + " topic STRING, `partition` INT, `offset` BIGINT, kafka_ts TIMESTAMP_LTZ(6)) WITH ('format-version'='2')");
    tables.executeSql(
        "INSERT INTO ice.bench.events SELECT " + chosen + "pad, topic, `partition`, `offset`,"
            + " CAST(kafka_ts AS TIMESTAMP_LTZ(6))" + from).await();
  }
}
