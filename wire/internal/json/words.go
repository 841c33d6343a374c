package json

// Strings that nearly every message has: what is read need not be copied where it is one of
// them.

// words are these strings, by themselves.
var words = wordsOf(
	// Keys of triggers.
	"jobId", "executorHandler", "executorParams", "executorBlockStrategy", "executorTimeout", "logId", "logDateTime",
	"glueType", "glueSource", "glueUpdatetime", "broadcastIndex", "broadcastTotal", "scheduledAt", "attempt", "maxPerExecutor",
	"bootId", "againAfter", "startToken", "dueAt", "jobName", "jobKey", "app", "route", "jobVersion", "triggerType", "traceparent", "tracestate",
	"zone", "zoneOffset", "triggerId", "parentId", "businessTime", "windowStart", "windowEnd", "firstAt", "lastAt", "count",
	// Keys of results and answers.
	"logDateTim", "handleCode", "handleMsg", "executeResult", "noRetry", "killed", "shutdown", "retryIn", "snoozeIn", "exact", "progress",
	"callbackList", "code", "msg", "content", "data", "runState",
	// Values, wire.GlueBean and wire.MsgSuccess among them.
	"BEAN", "Success", "SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY", "CONCURRENT", "CRON", "FIX_RATE", "MANUAL",
)

func wordsOf(list ...string) map[string]string {
	all := make(map[string]string, len(list))
	for _, s := range list {
		all[s] = s
	}
	return all
}

// Word is Text for a string, which is one of words as a rule.
func (v Value) Word() (string, error) {
	if v[0] == '"' {
		if s, ok := words[string(v[1:len(v)-1])]; ok {
			return s, nil
		}
	}
	return v.Text()
}
