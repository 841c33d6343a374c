package wire

// What an executor tells an admin, and the messages of that: registrations and results.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/wire/internal/json"
)

// Admin is what an executor calls. All methods are safe for concurrent use. See
// the package comment for the meaning of an error and of a code that is not 200.
//
// Called by the handler of [NewAdminHandler], an implementation learns from
// [CallerFrom] for which app the caller may speak, and answers as if runs of
// other apps did not exist.
type Admin interface {
	// Callback delivers results. The caller sends the whole list again until the
	// answer is 200, so an admin answers 200 once every result is stored or known
	// not to matter (unknown id, result already stored). The list may be kept by
	// the callee, and neither side changes it after the call.
	Callback(ctx context.Context, results []CallbackRequest) (Return, error)
	// Registry says that an executor is there. It is repeated as a heartbeat.
	Registry(ctx context.Context, req RegistryRequest) (Return, error)
	// RegistryRemove says that an executor is gone.
	RegistryRemove(ctx context.Context, req RegistryRequest) (Return, error)
}

// GroupExecutor is the registry group of executors. The protocol knows another
// one, ADMIN, which nobody uses.
const GroupExecutor = "EXECUTOR"

// CapRepeat is the capability of executors that answer a run id they were sent
// before and never run it twice, within the life of one process. Only such a one
// is sent an id again after an unknown outcome.
const CapRepeat = "repeat"

// CapConcurrent is the capability of executors that run several runs of one job side by side
// under the block strategy CONCURRENT. Others run them one after the other.
const CapConcurrent = "concurrent"

// CapBoot is the capability of executors that say in the answer to a trigger, and to the kill of
// one run, which process has given it: Return.BootID. Behind an address that stands for several
// processes nothing else tells them apart.
const CapBoot = "boot"

// RegistryRequest names one address of one executor app.
type RegistryRequest struct {
	// RegistryGroup is GroupExecutor.
	RegistryGroup string `json:"registryGroup"`
	// RegistryKey is the app's name.
	RegistryKey string `json:"registryKey"`
	// RegistryValue is the executor's base address, normally with a trailing
	// slash. It stays the same to the byte for the life of a process.
	RegistryValue string `json:"registryValue"`

	// BootID is another one for each process of an executor of ours. Other peers
	// do not send it and ignore it.
	BootID string `json:"bootId,omitempty"`
	// Capabilities are what an executor of ours can do beyond the protocol,
	// such as CapRepeat. Other peers do not send them and ignore them.
	Capabilities []string `json:"capabilities,omitempty"`
}

// Complete reports whether the three fields of the protocol are there. A request
// where one is blank is answered MsgIllegalArgument.
func (r RegistryRequest) Complete() bool {
	return strings.TrimSpace(r.RegistryGroup) != "" && strings.TrimSpace(r.RegistryKey) != "" && strings.TrimSpace(r.RegistryValue) != ""
}

// Encode appends the request.
func (r RegistryRequest) Encode(dst []byte) []byte { return json.Encode(dst, r) }

// Decode reads a request, complete or not.
func (r *RegistryRequest) Decode(src []byte) error {
	*r = RegistryRequest{}
	return decodeObject(src, func(key string, val json.Value) (err error) {
		switch key {
		case "registryGroup":
			r.RegistryGroup, err = val.Text()
		case "registryKey":
			r.RegistryKey, err = val.Text()
		case "registryValue":
			r.RegistryValue, err = val.Text()
		case "bootId":
			r.BootID, err = val.Text()
		case "capabilities":
			r.Capabilities, err = val.Texts()
		}
		return err
	})
}

// MaxCallbacks is how many results one callback may hold. Java executors up to
// 3.4.0 send all they have, later ones 50 at a time.
const MaxCallbacks = 10_000

// CallbackRequest is the result of one run.
type CallbackRequest struct {
	// LogID is the run's id.
	LogID int64 `json:"logId"`
	// LogDateTim is TriggerRequest.LogDateTime, in ms.
	LogDateTim int64 `json:"logDateTim"`
	// HandleCode is CodeSuccess, CodeFail or CodeTimeout. Decoded, it may be any
	// number, and zero where the peer has told no result: that is no success.
	HandleCode int `json:"handleCode"`
	// HandleMsg is the result's text, absent when empty.
	HandleMsg string `json:"handleMsg,omitempty"`
	// NoRetry says that the run failed for good: another attempt cannot
	// succeed. Other peers do not send the key and ignore it.
	NoRetry bool `json:"noRetry,omitempty"`
	// Killed says that the run was not let finish: by a kill, a cover-early or a
	// shutdown. Other peers do not send the key and ignore it.
	Killed bool `json:"killed,omitempty"`
	// Shutdown says, beside Killed, that it was a shutdown of the executor: nobody wanted
	// this run ended. Other peers do not send the key and ignore it.
	Shutdown bool `json:"shutdown,omitempty"`
	// RetryIn is how long after its end a failed run is to be tried again, in ms; zero leaves
	// that to the admin. Other peers do not send the key and ignore it.
	RetryIn int64 `json:"retryIn,omitempty"`
	// SnoozeIn says, where it is positive, that the run has not failed and is to come again so
	// long after its end, in ms. HandleCode is CodeFail beside it: a peer that ignores the key
	// takes the run for failed, which is better than for done.
	SnoozeIn int64 `json:"snoozeIn,omitempty"`
	// Exact says that Killed tells all: a text that reads like a kill is the handler's
	// own then. Executors of ours set it; other peers do not send the key and ignore
	// it.
	Exact bool `json:"exact,omitempty"`
	// Progress is how far the run was when it ended. The key is absent where nothing was
	// said.
	Progress Progress `json:"progress,omitzero"`
}

// IsKilled reports whether a result's text is that of a Java executor which has not let
// the run finish. Executors of ours set CallbackRequest.Killed.
func IsKilled(handleMsg string) bool {
	return strings.HasSuffix(handleMsg, strings.TrimPrefix(MsgKilledRunning, "%s")) ||
		strings.HasSuffix(handleMsg, strings.TrimPrefix(MsgKilledQueued, "%s"))
}

// IsShutdown reports whether the text of a killed run is that of a Java executor which was
// shut down. Executors of ours set CallbackRequest.Shutdown.
func IsShutdown(handleMsg string) bool { return strings.HasPrefix(handleMsg, StopShutdown) }

// CallbackForm is one of the two bodies in which results travel.
type CallbackForm int

const (
	// CallbackList is the form of G1 to G3: a list. Each result is there twice,
	// since G1 reads executeResult only, and later ones handleCode and
	// handleMsg.
	CallbackList CallbackForm = iota
	// CallbackObject is the form of G4: an object with the list in
	// callbackList, and logDateTime for logDateTim.
	CallbackObject
)

// executeResult is a result as G1 knows it.
type executeResult struct {
	Code int
	Msg  string
}

// resultSize is about how many bytes a result without a text has on its way, in the form that
// has more.
const resultSize = 160

// EncodeCallback appends results in one of the forms.
func EncodeCallback(dst []byte, form CallbackForm, results []CallbackRequest) []byte {
	dst = slices.Grow(dst, len(results)*resultSize)
	if form == CallbackObject {
		dst = append(dst, `{"callbackList":`...)
	}
	dst = append(dst, '[')
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = results[i].encode(dst, form)
	}
	dst = append(dst, ']')
	if form == CallbackObject {
		dst = append(dst, '}')
	}
	return dst
}

// encode appends a result. The date's key is spelled differently in a CallbackObject, and
// executeResult is in a CallbackList only.
func (r *CallbackRequest) encode(dst []byte, form CallbackForm) []byte {
	date := "logDateTim"
	if form == CallbackObject {
		date = "logDateTime"
	}
	w := json.WriteObject(dst)
	w.Number("logId", r.LogID)
	w.Number(date, r.LogDateTim)
	w.Number("handleCode", int64(r.HandleCode))
	w.TextIf("handleMsg", r.HandleMsg)
	w.FlagIf("noRetry", r.NoRetry)
	w.FlagIf("killed", r.Killed)
	w.FlagIf("shutdown", r.Shutdown)
	w.NumberIf("retryIn", r.RetryIn)
	w.NumberIf("snoozeIn", r.SnoozeIn)
	w.FlagIf("exact", r.Exact)
	w.ValueIf("progress", r.Progress != Progress{}, r.Progress)
	if form == CallbackObject {
		return w.End()
	}
	w.Open("executeResult")
	w.Number("code", int64(r.HandleCode))
	w.TextIf("msg", r.HandleMsg)
	w.Close()
	return w.End()
}

// DecodeCallback reads results in either form. A result's code is handleCode
// or, where that is absent or zero, the code of executeResult (docs/xxl-job.md,
// bodies), and its text likewise. More than MaxCallbacks are an error, and so is a result that is
// not understood.
func DecodeCallback(src []byte) ([]CallbackRequest, error) {
	results, partly, err := decodeCallback(src)
	if err == nil && partly != nil {
		err = bodyError(partly.why())
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// decodeCallback is DecodeCallback, but that it leaves out results that are not understood
// where there are others, which partly says then.
func decodeCallback(src []byte) (results []CallbackRequest, partly *partlyRead, err error) {
	v, broken, err := json.ParseParts(src)
	if err != nil {
		return nil, nil, bodyError(err)
	}
	if v[0] == '[' {
		results, partly, err = decodeResults(v)
	} else {
		results, partly, err = decodeCallbackList(v)
	}
	var cut *json.CutError
	switch {
	case errors.As(broken, &cut):
		if partly == nil {
			partly = &partlyRead{of: len(results)}
		}
		partly.rest = cut
	case broken != nil && partly != nil:
		partly.first = broken
	}
	if err == nil && partly != nil && len(results) == 0 {
		err = partly.why()
	}
	if err != nil {
		return nil, nil, bodyError(err)
	}
	return results, partly, nil
}

func decodeCallbackList(v json.Value) (results []CallbackRequest, partly *partlyRead, err error) {
	found := false
	err = v.Object(func(key string, val json.Value) (err error) {
		if key == "callbackList" {
			found = true
			results, partly, err = decodeResults(val)
		}
		return err
	})
	if err == nil && !found {
		err = errors.New("callbackList is missing")
	}
	return results, partly, err
}

// decodeResults reads a list of results. Those that are not understood are left out, which
// partly says.
func decodeResults(v json.Value) (results []CallbackRequest, partly *partlyRead, err error) {
	// Room for as many results as there may be, with short texts: some twice the bytes that
	// there are to read.
	results = make([]CallbackRequest, 0, min(len(v)/64+1, MaxCallbacks))
	bad, of := 0, 0
	var first error
	err = v.Array(func(i int, val json.Value) error {
		if i == MaxCallbacks {
			return fmt.Errorf("more than %d results", MaxCallbacks)
		}
		of++
		r, err := decodeResult(val)
		if err == nil {
			results = append(results, r)
			return nil
		}
		if bad++; bad == 1 {
			first = fmt.Errorf("item %d: %w", i, err)
		}
		return nil
	})
	if bad > 0 {
		partly = &partlyRead{bad: bad, of: of, first: first}
	}
	return results, partly, err
}

func decodeResult(v json.Value) (r CallbackRequest, err error) {
	var old executeResult
	var dateTime int64
	err = v.Object(func(key string, val json.Value) (err error) {
		switch key {
		case "logId":
			r.LogID, err = val.Int64()
		case "logDateTim":
			r.LogDateTim, err = val.Int64()
		case "logDateTime":
			dateTime, err = val.Int64()
		case "handleCode":
			r.HandleCode, err = val.Int32()
		case "handleMsg":
			r.HandleMsg, err = val.Text()
		case "executeResult":
			old, err = decodeExecuteResult(val)
		case "noRetry":
			r.NoRetry, err = val.Flag()
		case "killed":
			r.Killed, err = val.Flag()
		case "shutdown":
			r.Shutdown, err = val.Flag()
		case "retryIn":
			r.RetryIn, err = val.Int64()
		case "snoozeIn":
			r.SnoozeIn, err = val.Int64()
		case "exact":
			r.Exact, err = val.Flag()
		case "progress":
			r.Progress = decodeProgress(val)
		}
		return err
	})
	if r.LogDateTim == 0 {
		r.LogDateTim = dateTime
	}
	if r.HandleCode == 0 {
		r.HandleCode = old.Code
		if r.HandleMsg == "" {
			r.HandleMsg = old.Msg
		}
	}
	return r, err
}

func decodeExecuteResult(v json.Value) (res executeResult, err error) {
	if v.IsNull() {
		return res, nil
	}
	err = v.Object(func(key string, val json.Value) (err error) {
		switch key {
		case "code":
			res.Code, err = val.Int32()
		case "msg":
			res.Msg, err = val.Text()
		}
		return err
	})
	return res, err
}
