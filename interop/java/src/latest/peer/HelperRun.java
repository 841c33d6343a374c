package peer;

import com.xxl.job.core.context.XxlJobHelper;

/** The run of the calling thread, from 3.3.0 on. */
final class HelperRun implements Run {
    @Override
    public String param() {
        return XxlJobHelper.getJobParam();
    }

    @Override
    public long runId() {
        return XxlJobHelper.getLogId();
    }

    @Override
    public long jobId() {
        return XxlJobHelper.getJobId();
    }

    @Override
    public int shardIndex() {
        return XxlJobHelper.getShardIndex();
    }

    @Override
    public int shardTotal() {
        return XxlJobHelper.getShardTotal();
    }

    @Override
    public void log(String line) {
        XxlJobHelper.log("{}", line);
    }

    @Override
    public void succeed(String text) {
        XxlJobHelper.handleSuccess(text);
    }

    @Override
    public void fail(String text) {
        XxlJobHelper.handleFail(text);
    }
}
