package peer;

import com.xxl.job.core.handler.annotation.XxlJob;

/** The scenarios as users write handlers from 2.3.0 on: annotated methods without arguments. */
public final class Handlers {
    private final Scenarios scenarios;

    Handlers(Scenarios scenarios) {
        this.scenarios = scenarios;
    }

    @XxlJob("echo")
    public void echo() throws Exception {
        scenarios.echo(new HelperRun());
    }

    @XxlJob("quote")
    public void quote() throws Exception {
        scenarios.quote(new HelperRun());
    }

    @XxlJob("shard")
    public void shard() throws Exception {
        scenarios.shard(new HelperRun());
    }

    @XxlJob("sleep")
    public void sleep() throws Exception {
        scenarios.sleep(new HelperRun());
    }

    @XxlJob("sleep2")
    public void sleep2() throws Exception {
        scenarios.sleep(new HelperRun());
    }

    @XxlJob("fail")
    public void fail() throws Exception {
        scenarios.fail(new HelperRun());
    }

    @XxlJob("lines")
    public void lines() throws Exception {
        scenarios.lines(new HelperRun());
    }

    @XxlJob("count")
    public void count() throws Exception {
        scenarios.count(new HelperRun());
    }
}
