import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * FlinkTopics BROKERS TOPIC FOLDER TARGET GUARANTEE [key=value ...]: Kafka's JSON into another topic, with the position of the
 * source record in a header, in a mini cluster of this process, as SQL, until the process is ended. GUARANTEE is at-least-once or
 * exactly-once. Keys are Flink's own, but for bench.work (encode or enrich) and bench.reference, a CSV file of device, site, model.
 */
public class FlinkTopics {
  public static void main(String[] arguments) throws Exception {
    String brokers = arguments[0], topic = arguments[1], folder = arguments[2], target = arguments[3], guarantee = arguments[4];
    Map<String, String> settings = new LinkedHashMap<>();
    settings.put("parallelism.default", "2");
    settings.put("taskmanager.numberOfTaskSlots", "2");
    settings.put("execution.checkpointing.interval", "1 s");
    settings.put("execution.checkpointing.mode", "EXACTLY_ONCE");
    settings.put("execution.buffer-timeout.enabled", "true");
    settings.put("execution.buffer-timeout.interval", "0 ms");
    settings.put("state.backend.type", "hashmap");
    settings.put("execution.checkpointing.storage", "filesystem");
    settings.put("execution.checkpointing.dir", "file://" + folder + "/checkpoints");
    settings.put("execution.checkpointing.num-retained", "1");
    settings.put("restart-strategy.type", "none");
    settings.put("rest.bind-port", "0");
    for (int i = 5; i < arguments.length; i++) {
      String[] pair = arguments[i].split("=", 2);
      settings.put(pair[0], pair[1]);
    }
    boolean encodes = settings.get("bench.work").equals("encode");
    String reference = settings.get("bench.reference");
    settings.keySet().removeIf(key -> key.startsWith("bench."));
    Configuration configuration = new Configuration();
    settings.forEach(configuration::setString);
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(settings.get("parallelism.default")), configuration);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    tables.executeSql(
        "CREATE TEMPORARY TABLE records (event_id STRING, device STRING, `value` DOUBLE, kind STRING, pad STRING,"
            + " topic STRING METADATA VIRTUAL, `partition` INT METADATA VIRTUAL, `offset` BIGINT METADATA VIRTUAL)"
            + " WITH ('connector'='kafka','topic'='" + topic + "','properties.bootstrap.servers'='" + brokers + "',"
            + "'properties.group.id'='flink-" + topic + "','scan.startup.mode'='earliest-offset','format'='json')");
    String columns, chosen, from = " FROM records";
    if (encodes) {
      columns = "event_id STRING, device STRING, `value` DOUBLE, kind STRING, part STRING, pad STRING";
      chosen = "event_id, SHA256(device), `value` * 1.8E0 + 32E0, UPPER(kind), SUBSTRING(event_id, 7, 6), pad";
      from += " WHERE `value` > 36.9E0";
    } else {
      tables.createTemporarySystemFunction("device_facts", new DeviceFacts(reference));
      columns = "event_id STRING, device STRING, `value` DOUBLE, kind STRING, site STRING, model STRING, pad STRING";
      chosen = "event_id, device, `value`, kind, site, model, pad";
      from += " LEFT JOIN LATERAL TABLE(device_facts(device)) AS facts(site, model) ON TRUE";
    }
    boolean once = guarantee.equals("exactly-once");
    tables.executeSql(
        "CREATE TEMPORARY TABLE sent (" + columns + ", headers MAP<STRING, BYTES> METADATA) WITH ('connector'='kafka','topic'='"
            + target + "','properties.bootstrap.servers'='" + brokers + "','format'='json','json.encode.ignore-null-fields'='true',"
            + "'key.format'='raw','key.fields'='event_id','properties.linger.ms'='0','properties.compression.type'='lz4',"
            + "'properties.transaction.timeout.ms'='60000','sink.delivery-guarantee'='" + guarantee + "'"
            + (once ? ",'sink.transactional-id-prefix'='flink-" + target + "'" : "") + ")");
    tables.executeSql(
        "INSERT INTO sent SELECT " + chosen + ", MAP['lakebound_source', ENCODE(topic || '/' || CAST(`partition` AS STRING) || '/'"
            + " || CAST(`offset` AS STRING) || '/0', 'UTF-8')]" + from).await();
  }
}
