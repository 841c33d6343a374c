package wire

// What an admin asks an executor, and the messages of that.

import (
	"context"
	stdjson "encoding/json"
	"slices"

	"github.com/xxljob/xxljob/wire/internal/json"
)

// Executor is what an admin calls. All methods are safe for concurrent use and
// answer at once: none waits for a handler. See the package comment for the
// meaning of an error and of a code that is not 200.
type Executor interface {
	// Beat asks whether the executor takes runs.
	Beat(ctx context.Context) (Return, error)
	// IdleBeat asks whether a job is idle. The answer is MsgBusy when it runs or
	// has runs queued.
	IdleBeat(ctx context.Context, req IdleBeatRequest) (Return, error)
	// Run hands over one run. Code 200 means accepted, not executed: the result
	// comes by Admin.Callback.
	Run(ctx context.Context, req TriggerRequest) (Return, error)
	// Kill stops what runs and what waits of a job, or one run of it. It is
	// answered 200 also when there was nothing to stop.
	Kill(ctx context.Context, req KillRequest) (Return, error)
	// Log reads the lines a run has logged so far.
	Log(ctx context.Context, req LogRequest) (LogReturn, error)
}

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
	// DueAt is when the run became due, in ms. With it an executor of ours tells which of two
	// runs of a job is the later one, under DISCARD_LATER and COVER_EARLY: that of the later
	// DueAt, then of the greater LogID. A run without it is as late as its arrival. Other peers
	// do not send it and ignore it.
	DueAt int64 `json:"dueAt,omitempty"`

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
	// Zone is the IANA name of the job's time zone, and ZoneOffset its distance from UTC at
	// ScheduledAt, in seconds, for an executor that has no data of it.
	Zone       string `json:"zone,omitempty"`
	ZoneOffset int    `json:"zoneOffset,omitempty"`
	// TriggerID is the first run of the same trigger, where that is another; ParentID the run
	// whose success has led to this one.
	TriggerID int64 `json:"triggerId,omitempty"`
	ParentID  int64 `json:"parentId,omitempty"`
	// BusinessTime is set where the run stands for another time than ScheduledAt, WindowStart
	// and WindowEnd for a job behind others: all in ms.
	BusinessTime int64 `json:"businessTime,omitempty"`
	WindowStart  int64 `json:"windowStart,omitempty"`
	WindowEnd    int64 `json:"windowEnd,omitempty"`
	// FirstAt, LastAt (in ms) and Count describe the instants that the run makes up for.
	FirstAt int64 `json:"firstAt,omitempty"`
	LastAt  int64 `json:"lastAt,omitempty"`
	Count   int   `json:"count,omitempty"`
	// Instants are these instants where they are more than two, in ms, in order and with commas
	// between, at most 1,000. Empty where the admin cannot say.
	Instants string `json:"instants,omitempty"`
	// PreviousAt is the instant of the job's schedule before those that the run stands for, in
	// ms; zero for none, and to an executor in the process of its admin, which it asks.
	PreviousAt int64 `json:"previousAt,omitempty"`
}

// Encode appends the request, the same for every generation: G4 receives it at
// another path.
func (r TriggerRequest) Encode(dst []byte) []byte {
	w := json.WriteObject(slices.Grow(dst, r.size()))
	w.Number("jobId", r.JobID)
	w.Text("executorHandler", r.ExecutorHandler)
	w.Text("executorParams", r.ExecutorParams)
	w.Text("executorBlockStrategy", r.ExecutorBlockStrategy)
	w.Number("executorTimeout", int64(r.ExecutorTimeout))
	w.Number("logId", r.LogID)
	w.Number("logDateTime", r.LogDateTime)
	w.Text("glueType", r.GlueType)
	w.Text("glueSource", r.GlueSource)
	w.Number("glueUpdatetime", r.GlueUpdatetime)
	w.Number("broadcastIndex", int64(r.BroadcastIndex))
	w.Number("broadcastTotal", int64(r.BroadcastTotal))
	w.NumberIf("scheduledAt", r.ScheduledAt)
	w.NumberIf("attempt", int64(r.Attempt))
	w.NumberIf("maxPerExecutor", int64(r.MaxPerExecutor))
	w.TextIf("bootId", r.BootID)
	w.NumberIf("againAfter", r.AgainAfter)
	w.NumberIf("startToken", r.StartToken)
	w.NumberIf("dueAt", r.DueAt)
	w.TextIf("jobName", r.JobName)
	w.TextIf("jobKey", r.JobKey)
	w.TextIf("app", r.App)
	w.TextIf("route", r.Route)
	w.NumberIf("jobVersion", r.JobVersion)
	w.TextIf("triggerType", r.TriggerType)
	w.TextIf("traceparent", r.Traceparent)
	w.TextIf("tracestate", r.Tracestate)
	w.TextIf("zone", r.Zone)
	w.NumberIf("zoneOffset", int64(r.ZoneOffset))
	w.NumberIf("triggerId", r.TriggerID)
	w.NumberIf("parentId", r.ParentID)
	w.NumberIf("businessTime", r.BusinessTime)
	w.NumberIf("windowStart", r.WindowStart)
	w.NumberIf("windowEnd", r.WindowEnd)
	w.NumberIf("firstAt", r.FirstAt)
	w.NumberIf("lastAt", r.LastAt)
	w.NumberIf("count", int64(r.Count))
	w.TextIf("instants", r.Instants)
	w.NumberIf("previousAt", r.PreviousAt)
	return w.End()
}

// size is about how many bytes the request has on its way: rather too many than too few.
func (r *TriggerRequest) size() int {
	const keysAndNumbers = 512
	return keysAndNumbers + len(r.ExecutorHandler) + len(r.ExecutorParams) + len(r.GlueSource) + len(r.JobName) + len(r.JobKey) + len(r.App) + len(r.Traceparent) + len(r.Tracestate) + len(r.Zone) + len(r.Instants)
}

// Decode reads a request.
func (r *TriggerRequest) Decode(src []byte) error {
	*r = TriggerRequest{}
	return decodeObject(src, r.field)
}

func (r *TriggerRequest) field(key string, val json.Value) (err error) {
	switch key {
	case "jobId":
		r.JobID, err = val.ID32()
	case "executorHandler":
		r.ExecutorHandler, err = val.Text()
	case "executorParams":
		r.ExecutorParams, err = val.Text()
	case "executorBlockStrategy":
		r.ExecutorBlockStrategy, err = val.Word()
	case "executorTimeout":
		r.ExecutorTimeout, err = val.Int32()
	case "logId":
		r.LogID, err = val.Int64()
	case "logDateTime":
		r.LogDateTime, err = val.Int64()
	case "glueType":
		r.GlueType, err = val.Word()
	case "glueSource":
		r.GlueSource, err = val.Text()
	case "glueUpdatetime":
		r.GlueUpdatetime, err = val.Int64()
	case "broadcastIndex":
		r.BroadcastIndex, err = val.Int32()
	case "broadcastTotal":
		r.BroadcastTotal, err = val.Int32()
	case "scheduledAt":
		r.ScheduledAt, err = val.Int64()
	case "attempt":
		r.Attempt, err = val.Int32()
	case "maxPerExecutor":
		r.MaxPerExecutor, err = val.Int32()
	case "bootId":
		r.BootID, err = val.Text()
	case "againAfter":
		r.AgainAfter, err = val.Int64()
	case "startToken":
		r.StartToken, err = val.Int64()
	case "dueAt":
		r.DueAt, err = val.Int64()
	case "jobName":
		r.JobName, err = val.Text()
	case "jobKey":
		r.JobKey, err = val.Text()
	case "app":
		r.App, err = val.Text()
	case "route":
		r.Route, err = val.Word()
	case "jobVersion":
		r.JobVersion, err = val.Int64()
	case "triggerType":
		r.TriggerType, err = val.Word()
	case "traceparent":
		r.Traceparent, err = val.Text()
	case "tracestate":
		r.Tracestate, err = val.Text()
	default:
		return r.times(key, val)
	}
	return err
}

// times reads what a handler is told of the instants of its run.
func (r *TriggerRequest) times(key string, val json.Value) (err error) {
	switch key {
	case "zone":
		r.Zone, err = val.Text()
	case "zoneOffset":
		r.ZoneOffset, err = val.Int32()
	case "triggerId":
		r.TriggerID, err = val.Int64()
	case "parentId":
		r.ParentID, err = val.Int64()
	case "businessTime":
		r.BusinessTime, err = val.Int64()
	case "windowStart":
		r.WindowStart, err = val.Int64()
	case "windowEnd":
		r.WindowEnd, err = val.Int64()
	case "firstAt":
		r.FirstAt, err = val.Int64()
	case "lastAt":
		r.LastAt, err = val.Int64()
	case "count":
		r.Count, err = val.Int32()
	case "instants":
		r.Instants, err = val.Text()
	case "previousAt":
		r.PreviousAt, err = val.Int64()
	}
	return err
}

// IdleBeatRequest asks about one job, and with a LogID about one run of it.
type IdleBeatRequest struct {
	// JobID is the job's id, at most 2^31-1 for a Java peer.
	JobID int64 `json:"jobId"`

	// LogID, when not zero, asks about this run: an executor of ours says in
	// Return.RunState what it knows of it, whatever else the job does, and refuses
	// from then on what it has said that it does not know. Other peers do not send
	// these keys, ignore them, and answer about the job.
	LogID int64 `json:"logId,omitempty"`
	// LogDateTime and StartToken are those of the run's TriggerRequest. The token may
	// be that of a later owner of the run who has not sent it.
	LogDateTime int64 `json:"logDateTime,omitempty"`
	StartToken  int64 `json:"startToken,omitempty"`
	// StartedAgo is how long ago the run was started, in ms: an executor that may have
	// forgotten what it was sent then says so.
	StartedAgo int64 `json:"startedAgo,omitempty"`
	// BootID is the boot id of the process that the run was started for: that one was
	// there then, however long ago it says that it was.
	BootID string `json:"bootId,omitempty"`
}

// Encode appends the request.
func (r IdleBeatRequest) Encode(dst []byte) []byte { return json.Encode(dst, r) }

// Decode reads a request.
func (r *IdleBeatRequest) Decode(src []byte) error {
	*r = IdleBeatRequest{}
	return decodeObject(src, func(key string, val json.Value) (err error) {
		switch key {
		case "jobId":
			r.JobID, err = val.ID32()
		case "logId":
			r.LogID, err = val.Int64()
		case "logDateTime":
			r.LogDateTime, err = val.Int64()
		case "startToken":
			r.StartToken, err = val.Int64()
		case "startedAgo":
			r.StartedAgo, err = val.Int64()
		case "bootId":
			r.BootID, err = val.Text()
		}
		return err
	})
}

// KillRequest stops the runs of one job.
type KillRequest struct {
	// JobID is the job's id, at most 2^31-1 for a Java peer.
	JobID int64 `json:"jobId"`
	// LogID, when not zero, stops only the run with this id. Other peers do not
	// know the key and stop everything of the job.
	LogID int64 `json:"logId,omitempty"`
	// LogDateTime is the run's TriggerRequest.LogDateTime: a run with the same LogID
	// and another date is another admin's, or an earlier life of its database's, and
	// is left alone. Zero is any date. Other peers do not know the key.
	LogDateTime int64 `json:"logDateTime,omitempty"`
	// Reason replaces StopKill in the result. Other peers do not know the key.
	Reason string `json:"reason,omitempty"`
	// Shutdown says that the process which asks ends, and that nobody wanted the run ended. Other
	// peers do not know the key.
	Shutdown bool `json:"shutdown,omitempty"`
}

// Encode appends the request.
func (r KillRequest) Encode(dst []byte) []byte { return json.Encode(dst, r) }

// Decode reads a request.
func (r *KillRequest) Decode(src []byte) error {
	*r = KillRequest{}
	return decodeObject(src, func(key string, val json.Value) (err error) {
		switch key {
		case "jobId":
			r.JobID, err = val.ID32()
		case "logId":
			r.LogID, err = val.Int64()
		case "logDateTime":
			r.LogDateTime, err = val.Int64()
		case "reason":
			r.Reason, err = val.Text()
		case "shutdown":
			r.Shutdown, err = val.Flag()
		}
		return err
	})
}

// LogRequest asks for the lines of one run.
type LogRequest struct {
	// LogDateTim is TriggerRequest.LogDateTime under the protocol's other
	// spelling, in ms. Java admins send it in whole seconds.
	LogDateTim int64 `json:"logDateTim"`
	// LogID is the run's id.
	LogID int64 `json:"logId"`
	// FromLineNum is the first line wanted, from 1, 32 bits wide.
	FromLineNum int `json:"fromLineNum"`
	// Tail, when not zero, asks an executor of ours for the last so many lines, wherever
	// FromLineNum is: its answer has LogResult.Tail. Other peers do not know the key, and
	// answer from FromLineNum on.
	Tail int `json:"tail,omitempty"`
}

// Encode appends the request with the date under both spellings: logDateTim,
// which peers up to G3 read, and logDateTime, which G4 reads (docs/xxl-job.md,
// bodies).
func (r LogRequest) Encode(dst []byte) []byte {
	return json.Encode(dst, struct {
		LogRequest
		LogDateTime int64 `json:"logDateTime"`
	}{r, r.LogDateTim})
}

// Decode reads a request, with the date under either spelling; of two, one that
// is not zero.
func (r *LogRequest) Decode(src []byte) error {
	*r = LogRequest{}
	var dateTime int64
	err := decodeObject(src, func(key string, val json.Value) (err error) {
		switch key {
		case "logDateTim":
			r.LogDateTim, err = val.Int64()
		case "logDateTime":
			dateTime, err = val.Int64()
		case "logId":
			r.LogID, err = val.Int64()
		case "fromLineNum":
			r.FromLineNum, err = val.Int32()
		case "tail":
			r.Tail, err = val.Int32()
		}
		return err
	})
	if r.LogDateTim == 0 {
		r.LogDateTim = dateTime
	}
	return err
}

// LogResult holds lines of a run's log. There is nothing new when FromLineNum
// is greater than ToLineNum.
type LogResult struct {
	// FromLineNum is the number of the first line, from 1.
	FromLineNum int `json:"fromLineNum"`
	// ToLineNum is the number of the last line.
	ToLineNum int `json:"toLineNum"`
	// LogContent holds the lines, each ended by a line feed.
	LogContent string `json:"logContent"`
	// IsEnd says that no line will ever follow. Executors say so only when
	// there is no log; the end of a run is known to the admin.
	IsEnd bool `json:"isEnd"`
	// Progress is how far the run is, from an executor of ours where it has not ended.
	// The key is absent where nothing was said.
	Progress Progress `json:"progress,omitzero"`
	// Tail says that these are the last lines, as LogRequest.Tail has asked for.
	Tail bool `json:"tail,omitempty"`
}

// LogReturn is the answer to a log request. Peers up to 3.2 carry the result
// under "content", later ones under "data": it is written under both keys
// and read from either.
type LogReturn struct {
	// Code and Msg are those of a Return.
	Code int
	Msg  string
	// Result is zero when the request was refused.
	Result LogResult
}

// OK reports whether the request was answered.
func (r LogReturn) OK() bool { return r.Code == CodeSuccess }

// Unauthorized is Return.Unauthorized.
func (r LogReturn) Unauthorized() bool { return unauthorized(r.Code, r.Msg) }

// logReturn is LogReturn as it travels.
type logReturn struct {
	Code    int        `json:"code"`
	Msg     string     `json:"msg,omitempty"`
	Content *LogResult `json:"content,omitempty"`
	Data    *LogResult `json:"data,omitempty"`
}

// MarshalJSON writes the result under both keys, and under none in a refusal.
func (r LogReturn) MarshalJSON() ([]byte, error) { return stdjson.Marshal(r.travelling()) }

// travelling returns r as it travels.
func (r LogReturn) travelling() logReturn {
	out := logReturn{Code: r.Code, Msg: r.Msg}
	if r.OK() {
		out.Content, out.Data = &r.Result, &r.Result
	}
	return out
}

// Encode appends the answer as MarshalJSON writes it, without the escaping of
// HTML.
func (r LogReturn) Encode(dst []byte) []byte { return json.Encode(dst, r.travelling()) }

// Decode reads the answer of an executor of any generation, with the result from
// "data", or else from "content". A result is an object, null or absent. See
// Return.Decode for what is an error.
func (r *LogReturn) Decode(src []byte) error {
	_, err := r.decode(src)
	return err
}

// decode also returns under which keys the result was.
func (r *LogReturn) decode(src []byte) (keys logKeys, err error) {
	v, err := json.Parse(src)
	if err != nil {
		return keys, answerError(err)
	}
	*r = LogReturn{}
	err = v.Object(func(key string, val json.Value) (err error) {
		switch key {
		case "code":
			r.Code, err = val.Int32()
		case "msg":
			r.Msg, err = val.Text()
		case "content":
			if keys.content = !val.IsNull(); keys.content && !keys.data {
				r.Result, err = decodeLogResult(val)
			}
		case "data":
			if keys.data = !val.IsNull(); keys.data {
				r.Result, err = decodeLogResult(val)
			}
		}
		return err
	})
	return keys, err
}

// logKeys are the keys of an answer that are there and not null.
type logKeys struct{ content, data bool }

// UnmarshalJSON is Decode.
func (r *LogReturn) UnmarshalJSON(b []byte) error { return r.Decode(b) }

func decodeLogResult(v json.Value) (res LogResult, err error) {
	err = v.Object(func(key string, val json.Value) (err error) {
		switch key {
		case "fromLineNum":
			res.FromLineNum, err = val.Int32()
		case "toLineNum":
			res.ToLineNum, err = val.Int32()
		case "logContent":
			res.LogContent, err = val.Text()
		case "isEnd":
			res.IsEnd, err = val.Flag()
		case "progress":
			res.Progress = decodeProgress(val)
		case "tail":
			res.Tail, err = val.Flag()
		}
		return err
	})
	return res, err
}

// Progress is how far a run is, by what its handler has said last. The zero value is that it
// has said nothing. Executors of ours send it; other peers do not, and ignore it.
type Progress struct {
	// Percent is from 0 to 100. Decoded, it may be any number of 32 bits.
	Percent int `json:"percent"`
	// Text is a few words about it, absent when empty.
	Text string `json:"text,omitempty"`
}

// decodeProgress reads a Progress. What is not understood says nothing, for a peer's own key of
// that name must not cost a result or a log.
func decodeProgress(v json.Value) (p Progress) {
	if v[0] != '{' {
		return p
	}
	err := v.Object(func(key string, val json.Value) (err error) {
		switch key {
		case "percent":
			p.Percent, err = val.Int32()
		case "text":
			p.Text, err = val.Text()
		}
		return err
	})
	if err != nil {
		return Progress{}
	}
	return p
}
