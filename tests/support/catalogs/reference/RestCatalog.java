// Serves Apache Iceberg's own REST catalog, of the tests' jar of iceberg-core, over a catalog in a database.
// As in the project's image of fixtures, CATALOG_X__Y_Z in the environment is the catalog's property x-y.z; REST_PORT is the port.

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

public class RestCatalog {
  private static final String PREFIX = "CATALOG_";

  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties = new HashMap<>(Map.of("jdbc.schema-version", "V1"));
    System.getenv().forEach((name, value) -> {
      if (name.startsWith(PREFIX)) {
        String key = name.substring(PREFIX.length()).replace("__", "-").replace("_", ".").toLowerCase();
        properties.put(key, value);
      }
    });
    properties.putIfAbsent("catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog");
    var adapter = new RESTCatalogAdapter(CatalogUtil.buildIcebergCatalog("rest_backend", properties, null));
    var context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    String port = System.getenv().getOrDefault("REST_PORT", "8181");
    var server = new Server(new InetSocketAddress(System.getenv().getOrDefault("REST_HOST", "0.0.0.0"), Integer.parseInt(port)));
    server.setHandler(context);
    server.start();
    server.join();
  }
}
