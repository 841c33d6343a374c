package peer;

import com.xxl.job.core.context.XxlJobHelper;

/** The run of the calling thread, from 2.3.0 on. */
final class HelperRun implements Run {
    @Override
    public String param() {
        return XxlJobHelper.getJobParam();
    }

    @Override
    public long runId() {
        // 2.3 and 2.4 do not tell it, but name the log file after it.
        String name = XxlJobHelper.getJobLogFileName();
        return Long.parseLong(name.substring(name.lastIndexOf('/') + 1, name.lastIndexOf('.')));
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
