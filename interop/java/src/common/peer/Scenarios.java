package peer;

/** The handlers, the same in every version of the library and in the peers of other languages. */
final class Scenarios {
    private final Journal journal;

    Scenarios(Journal journal) {
        this.journal = journal;
    }

    private interface Body {
        void run() throws Exception;
    }

    private void recorded(Run run, String handler, Body body) throws Exception {
        journal.add(run, handler, "start");
        String phase = "broken";
        try {
            body.run();
            phase = "end";
        } catch (InterruptedException e) {
            phase = "interrupted";
            throw e;
        } finally {
            journal.add(run, handler, phase);
        }
    }

    /** Logs its parameter, and has it for a result. */
    void echo(Run run) throws Exception {
        recorded(run, "echo", () -> {
            run.log(run.param());
            run.succeed(run.param());
        });
    }

    /** Has its parameter in quotation marks for a result, or the word null. */
    void quote(Run run) throws Exception {
        recorded(run, "quote", () -> run.succeed(run.param() == null ? "null" : "\"" + run.param() + "\""));
    }

    /** Has its part of a broadcast for a result: index/total. */
    void shard(Run run) throws Exception {
        recorded(run, "shard", () -> run.succeed(run.shardIndex() + "/" + run.shardTotal()));
    }

    /** Sleeps for as many ms as its parameter says, unless it is interrupted. */
    void sleep(Run run) throws Exception {
        recorded(run, "sleep", () -> {
            Thread.sleep(Long.parseLong(run.param()));
            run.succeed("slept " + run.param());
        });
    }

    /** Fails: "throw TEXT" with an exception, "say TEXT" without one. */
    void fail(Run run) throws Exception {
        recorded(run, "fail", () -> {
            String[] words = run.param().split(" ", 2);
            if (words[0].equals("throw")) {
                throw new IllegalStateException(words[1]);
            }
            run.fail(words[1]);
        });
    }

    /** Logs as many lines as the first number of its parameter says, with pauses of the second, in ms. */
    void lines(Run run) throws Exception {
        recorded(run, "lines", () -> {
            String[] words = run.param().split(" ");
            int n = Integer.parseInt(words[0]);
            for (int i = 1; i <= n; i++) {
                run.log("line " + i + " of " + n);
                Thread.sleep(Long.parseLong(words[1]));
            }
            run.succeed("");
        });
    }

    /** Does nothing but what all do: it leaves its trace in the journal. */
    void count(Run run) throws Exception {
        recorded(run, "count", () -> run.succeed(""));
    }
}
