package wire

import "slices"

// GlueBean is the glue type of a job whose handler is a function registered under
// a name. It is the only type this module runs.
const GlueBean = "BEAN"

// TriggerRequest hands one run to an executor.
type TriggerRequest struct {
	// JobID is the job's id, at most 2^31-1 for a Java peer.
	JobID int64 `json:"jobId"`
	// ExecutorHandler is the name of the handler. It is sent also when it is empty: a
	// Java executor looks the name up in a map that has no null.
	ExecutorHandler string `json:"executorHandler"`
	// ExecutorParams is the parameter. Absent and empty are the same here, and it is
	// sent also when it is empty: Java handlers get null for an absent one.
	ExecutorParams string `json:"executorParams"`
	// ExecutorBlockStrategy says what to do when the job still runs:
	// SERIAL_EXECUTION, DISCARD_LATER or COVER_EARLY. Any other value means
	// serial, but for CONCURRENT at executors of ours (CapConcurrent).
	ExecutorBlockStrategy string `json:"executorBlockStrategy"`
	// ExecutorTimeout is in seconds, 32 bits wide. Zero and less mean none.
	ExecutorTimeout int `json:"executorTimeout"`
	// LogID is the run's id.
	LogID int64 `json:"logId"`
	// LogDateTime is when the run was triggered, in ms. It decides the day
	// directory of the run's log and comes back in the callback.
	LogDateTime int64 `json:"logDateTime"`
	// GlueType is GlueBean, or the language of GlueSource.
	GlueType string `json:"glueType"`
	// GlueSource is the text of a script.
	GlueSource string `json:"glueSource"`
	// GlueUpdatetime is the version of the script, in ms.
	GlueUpdatetime int64 `json:"glueUpdatetime"`
	// BroadcastIndex is the number of this shard, from 0, 32 bits wide.
	BroadcastIndex int `json:"broadcastIndex"`
	// BroadcastTotal is the number of shards, 1 when the job is not sharded.
	BroadcastTotal int `json:"broadcastTotal"`

	// ScheduledAt is the instant the run was planned for, in ms. Other peers do
	// not send it (0) and ignore it.
	ScheduledAt int64 `json:"scheduledAt,omitempty"`
	// Attempt counts the attempts of one trigger as the admin counts them.
	// Other peers do not send it (0) and ignore it.
	Attempt int `json:"attempt,omitempty"`
	// MaxPerExecutor is how many runs of the job an executor runs side by side under
	// CONCURRENT, 32 bits wide; zero means as many as it has places. Other peers do not
	// send it and ignore it.
	MaxPerExecutor int `json:"maxPerExecutor,omitempty"`
	// BootID is the boot id that the executor has shown in its
	// RegistryRequest. One of ours whose own is another refuses the run: it is a
	// later process at the address, and does not know what the earlier one was
	// sent. Other peers do not send it and ignore it.
	BootID string `json:"bootId,omitempty"`
	// AgainAfter is how long ago the run was first sent, in ms; zero for the first
	// time. An executor of ours that does not know the id, and may have forgotten what
	// it was sent then, refuses the run with MsgForgotten: it cannot tell whether it
	// has run. Other peers do not send it and ignore it.
	AgainAfter int64 `json:"againAfter,omitempty"`
	// StartToken numbers the starts of a run: of two, the later one has the greater
	// number. An executor of ours that was asked about a start and did not have it
	// refuses that one and earlier ones from then on (see IdleBeatRequest). Other peers
	// do not send it and ignore it.
	StartToken int64 `json:"startToken,omitempty"`

	// What follows is for the handler to know, and changes nothing. Other peers do not
	// send it and ignore it.

	// JobName and JobKey are the job's, App is the app that it belongs to.
	JobName string `json:"jobName,omitempty"`
	JobKey  string `json:"jobKey,omitempty"`
	App     string `json:"app,omitempty"`
	// Route is the name of the job's strategy, JobVersion which version of the job it is.
	Route      string `json:"route,omitempty"`
	JobVersion int64  `json:"jobVersion,omitempty"`
	// TriggerType says what made the run: MANUAL, CRON and so on.
	TriggerType string `json:"triggerType,omitempty"`
	// Traceparent and Tracestate are the trace that the handler is called in, as W3C Trace
	// Context has them in headers of these names.
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
}

// Encode appends the request, the same for every generation: G4 receives it at
// another path.
func (r TriggerRequest) Encode(dst []byte) []byte {
	w := writeObject(slices.Grow(dst, r.size()))
	w.number("jobId", r.JobID)
	w.text("executorHandler", r.ExecutorHandler)
	w.text("executorParams", r.ExecutorParams)
	w.text("executorBlockStrategy", r.ExecutorBlockStrategy)
	w.number("executorTimeout", int64(r.ExecutorTimeout))
	w.number("logId", r.LogID)
	w.number("logDateTime", r.LogDateTime)
	w.text("glueType", r.GlueType)
	w.text("glueSource", r.GlueSource)
	w.number("glueUpdatetime", r.GlueUpdatetime)
	w.number("broadcastIndex", int64(r.BroadcastIndex))
	w.number("broadcastTotal", int64(r.BroadcastTotal))
	w.numberIf("scheduledAt", r.ScheduledAt)
	w.numberIf("attempt", int64(r.Attempt))
	w.numberIf("maxPerExecutor", int64(r.MaxPerExecutor))
	w.textIf("bootId", r.BootID)
	w.numberIf("againAfter", r.AgainAfter)
	w.numberIf("startToken", r.StartToken)
	w.textIf("jobName", r.JobName)
	w.textIf("jobKey", r.JobKey)
	w.textIf("app", r.App)
	w.textIf("route", r.Route)
	w.numberIf("jobVersion", r.JobVersion)
	w.textIf("triggerType", r.TriggerType)
	w.textIf("traceparent", r.Traceparent)
	w.textIf("tracestate", r.Tracestate)
	return w.end()
}

// size is about how many bytes the request has on its way: rather too many than too few.
func (r *TriggerRequest) size() int {
	const keysAndNumbers = 512
	return keysAndNumbers + len(r.ExecutorHandler) + len(r.ExecutorParams) + len(r.GlueSource) + len(r.JobName) + len(r.JobKey) + len(r.App) + len(r.Traceparent) + len(r.Tracestate)
}

// Decode reads a request.
func (r *TriggerRequest) Decode(src []byte) error {
	*r = TriggerRequest{}
	return decodeObject(src, r.field)
}

func (r *TriggerRequest) field(key string, val value) (err error) {
	switch key {
	case "jobId":
		r.JobID, err = val.id32()
	case "executorHandler":
		r.ExecutorHandler, err = val.text()
	case "executorParams":
		r.ExecutorParams, err = val.text()
	case "executorBlockStrategy":
		r.ExecutorBlockStrategy, err = val.word()
	case "executorTimeout":
		r.ExecutorTimeout, err = val.int32()
	case "logId":
		r.LogID, err = val.int64()
	case "logDateTime":
		r.LogDateTime, err = val.int64()
	case "glueType":
		r.GlueType, err = val.word()
	case "glueSource":
		r.GlueSource, err = val.text()
	case "glueUpdatetime":
		r.GlueUpdatetime, err = val.int64()
	case "broadcastIndex":
		r.BroadcastIndex, err = val.int32()
	case "broadcastTotal":
		r.BroadcastTotal, err = val.int32()
	case "scheduledAt":
		r.ScheduledAt, err = val.int64()
	case "attempt":
		r.Attempt, err = val.int32()
	case "maxPerExecutor":
		r.MaxPerExecutor, err = val.int32()
	case "bootId":
		r.BootID, err = val.text()
	case "againAfter":
		r.AgainAfter, err = val.int64()
	case "startToken":
		r.StartToken, err = val.int64()
	case "jobName":
		r.JobName, err = val.text()
	case "jobKey":
		r.JobKey, err = val.text()
	case "app":
		r.App, err = val.text()
	case "route":
		r.Route, err = val.word()
	case "jobVersion":
		r.JobVersion, err = val.int64()
	case "triggerType":
		r.TriggerType, err = val.word()
	case "traceparent":
		r.Traceparent, err = val.text()
	case "tracestate":
		r.Tracestate, err = val.text()
	}
	return err
}
