package peer;

/** What a scenario is told about its run, and what it can say, in any version of the library. */
interface Run {
    String param();

    long runId();

    /** The job's id, or 0 where the version does not tell it. */
    long jobId();

    int shardIndex();

    int shardTotal();

    /** Adds a line to the run's log. */
    void log(String line);

    /** Ends the run well, with a text. */
    void succeed(String text);

    /** Ends the run badly, without an exception. */
    void fail(String text);
}
