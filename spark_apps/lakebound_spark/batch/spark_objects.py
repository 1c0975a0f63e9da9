"""Functions of Spark's JVM that each small batch calls, found once.

py4j asks the JVM for each part of a name at each use: four questions for one class of Scala, each a round trip of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


@dataclass(frozen=True)
class SparkObjects:
    """What the rows of small batches need of a JVM.

    Attributes:
        nil: The empty list of Scala.
        array_to_seq: Makes a Scala sequence of an array.
        read_arrow_file: Reads Arrow batches of a file, and returns them serialised.
        new_arrow_server: Makes a server that takes Arrow batches by a socket.
        to_data_frame: Makes a DataFrame of serialised Arrow batches.
        serve: Gives what an iterator has to whoever reads from a socket.
        patience: How long to wait for the JVM to say whether it has given all rows, once it has closed the socket. It never
            does after an error such as that of a full stack, by which its thread ends (``SocketAuthServer``).
        converters: Turn rows into Arrow batches, and back.
        schema_of_json: Makes a schema of PySpark's text of it.
        datasets: Make a DataFrame of a plan.
        identity_of: The identity hash of a Java object.
        literals: Makes literals of values of Java's.
        expression_ids: Makes new ids of columns.
        option: Makes a Scala option.
        new_alias: The class of a column with a name.
        tree_patterns: What a plan or an expression may hold.
        new_relation: The class of a local relation.
        new_project: The class of a projection.
        new_filter: The class of a filter.
        new_scan: The class of a scan of rows that an RDD has.
        unknown_partitioning: The class of how rows are spread of which that is not known.
        replace_expressions: Spark's rule that puts what an expression stands for in its place.
        evaluate: Spark's rule that computes a projection or filter of a local relation: a local relation.
        predicates: Compile conditions.
        projections: Compile projections.
        predicate_handle: Calls what was compiled of a condition.
        function_class: The class of a function of Scala's.
        proxies: Make an object of an interface that calls a handle.
        new_map: Makes a map of Java's with what another one holds.
    """

    nil: Any
    array_to_seq: Callable[[Any], Any]
    read_arrow_file: Callable[[str], Any]
    new_arrow_server: Callable[[], Any]
    to_data_frame: Callable[..., Any]
    serve: Callable[[Any, str], Any]
    patience: Any
    converters: Any
    schema_of_json: Callable[[str], Any]
    datasets: Any
    identity_of: Callable[[Any], int]
    literals: Any
    expression_ids: Any
    option: Callable[[Any], Any]
    new_alias: Callable[..., Any]
    tree_patterns: Any
    new_relation: Callable[..., Any]
    new_project: Callable[..., Any]
    new_filter: Callable[..., Any]
    new_scan: Callable[..., Any]
    unknown_partitioning: Callable[[int], Any]
    replace_expressions: Callable[[Any], Any]
    evaluate: Callable[[Any], Any]
    predicates: Any
    projections: Any
    predicate_handle: Any
    function_class: Any
    proxies: Any
    new_map: Callable[[Any], Any]

    def to_seq(self, items: Sequence[Any]) -> Any:
        """Return a Scala sequence of items: a round trip for each, where PySpark takes three more to fill a list of Java's."""
        return reduce(lambda made, item: made.prepended(item), reversed(items), self.nil)

    def relation(self, columns: Any, rows: Any) -> Any:
        """Return a local relation of rows of the JVM."""
        return self.new_relation(columns, rows, False, self.option(None))

    def scan(self, columns: Any, of: Any, session: Any) -> Any:
        """Return a scan of the same rows as another, under the columns of a plan."""
        unknown = self.option(None)
        physical = (of.outputPartitioning(), of.outputOrdering())
        return of.copy(columns, of.rdd(), *physical, False, unknown, session._jsparkSession, unknown, unknown)

    def alias(self, of: Any, name: str, expression_id: Any, qualifier: Any = None, metadata: Any = None) -> Any:
        """Return an expression as a column.

        Args:
            of: The expression.
            name: Of the column.
            expression_id: Its id, by which other expressions mean it.
            qualifier: Names of the tables that may stand before the column's; None without any.
            metadata: Of the column; None without any.
        """
        return self.new_alias(of, name, expression_id, qualifier or self.nil, self.option(metadata), self.nil)

    def function_of(self, predicate: Any) -> Any:
        """Return a compiled condition as a function of Scala's: in Spark it is none, as a projection is."""
        return self.proxies.asInterfaceInstance(self.function_class, self.predicate_handle.bindTo(predicate))


def items_of(sequence: Any) -> list[Any]:
    """Return what a Scala sequence holds."""
    return [sequence.apply(index) for index in range(sequence.size())]


def id_of(column: Any) -> int:
    """Return the id of a plan's column: one that is computed gets a new one, and one that is only passed on keeps its own."""
    return int(column.exprId().id())


@lru_cache(maxsize=1)
def spark_objects(jvm: Any) -> SparkObjects:
    """Return them for a JVM, which is the same for all sessions of a process."""
    return SparkObjects(
        nil=getattr(getattr(jvm, "scala.collection.immutable.Nil$"), "MODULE$"),
        array_to_seq=getattr(getattr(jvm, "scala.collection.immutable.ArraySeq$"), "MODULE$").unsafeWrapArray,
        read_arrow_file=jvm.PythonSQLUtils.readArrowStreamFromFile,
        new_arrow_server=jvm.ArrowIteratorServer,
        to_data_frame=jvm.PythonSQLUtils.toDataFrame,
        serve=jvm.PythonRDD.serveIterator,
        patience=jvm.scala.concurrent.duration.Duration.create("10 s"),
        converters=getattr(getattr(jvm, "org.apache.spark.sql.execution.arrow.ArrowConverters$"), "MODULE$"),
        schema_of_json=jvm.org.apache.spark.sql.types.DataType.fromJson,
        datasets=getattr(getattr(jvm, "org.apache.spark.sql.classic.Dataset$"), "MODULE$"),
        identity_of=jvm.java.lang.System.identityHashCode,
        literals=getattr(getattr(jvm, "org.apache.spark.sql.catalyst.expressions.Literal$"), "MODULE$"),
        expression_ids=getattr(getattr(jvm, "org.apache.spark.sql.catalyst.expressions.NamedExpression$"), "MODULE$"),
        option=jvm.scala.Option.apply,
        tree_patterns=getattr(getattr(jvm, "org.apache.spark.sql.catalyst.trees.TreePattern$"), "MODULE$"),
        new_alias=jvm.org.apache.spark.sql.catalyst.expressions.Alias,
        new_relation=jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation,
        new_project=jvm.org.apache.spark.sql.catalyst.plans.logical.Project,
        new_filter=jvm.org.apache.spark.sql.catalyst.plans.logical.Filter,
        new_scan=jvm.org.apache.spark.sql.execution.LogicalRDD,
        unknown_partitioning=jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning,
        replace_expressions=getattr(
            getattr(jvm, "org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$"), "MODULE$"
        ).apply,
        evaluate=getattr(getattr(jvm, "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$"), "MODULE$").apply,
        predicates=getattr(getattr(jvm, f"{_EXPRESSIONS}.Predicate$"), "MODULE$"),
        projections=getattr(getattr(jvm, f"{_EXPRESSIONS}.UnsafeProjection$"), "MODULE$"),
        predicate_handle=_predicate_handle(jvm),
        function_class=_class(jvm, "scala.Function1"),
        proxies=jvm.java.lang.invoke.MethodHandleProxies,
        new_map=jvm.java.util.HashMap,
    )


def _predicate_handle(jvm: Any) -> Any:
    """Return the handle of the method by which a compiled condition says whether a row meets it."""
    invoke = jvm.java.lang.invoke
    takes_a_row = invoke.MethodType.methodType(
        jvm.java.lang.Boolean.TYPE, _class(jvm, "org.apache.spark.sql.catalyst.InternalRow")
    )
    return invoke.MethodHandles.publicLookup().findVirtual(_class(jvm, f"{_EXPRESSIONS}.BasePredicate"), "eval", takes_a_row)


def _class(jvm: Any, name: str) -> Any:
    return jvm.org.apache.spark.util.Utils.classForName(name, True, False)
