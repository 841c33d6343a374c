package wire

// The answer to a request, and what is said of a message that cannot be read.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xxljob/xxljob/wire/internal/json"
)

// Return is the answer to every request but a log request.
type Return struct {
	// Code is CodeSuccess when the request was accepted. Zero, which an empty
	// answer decodes to, is a failure.
	Code int `json:"code"`
	// Msg is the reason of a refusal, for people.
	Msg string `json:"msg,omitempty"`
	// Content is an optional note, where peers up to 3.2 look for it.
	Content string `json:"content,omitempty"`
	// Data is the same note, where peers from 3.3 on look for it.
	Data string `json:"data,omitempty"`
	// RunState answers, at executors of ours, an IdleBeatRequest with a LogID: what the
	// executor knows of the run. Other peers do not send the key and ignore it.
	RunState RunState `json:"runState,omitempty"`
	// BootID is which process answers (see TriggerRequest.BootID), at executors of ours: an
	// IdleBeatRequest with a LogID and, of those with CapBoot, a KillRequest with a LogID and a
	// TriggerRequest with a StartToken. Other peers do not send the key and ignore it.
	BootID string `json:"bootId,omitempty"`
}

// RunState is what an executor of ours knows of a run that it is asked about.
type RunState string

const (
	// RunHeld: the run waits, runs, or has ended and its result will come.
	RunHeld RunState = "held"
	// RunReported: the run has ended, and an admin has acknowledged its result, or the
	// executor has lost it: none will come.
	RunReported RunState = "reported"
	// RunUnknown: this process was not sent the run, and refuses the start that was
	// asked about, and earlier ones, should they still arrive.
	RunUnknown RunState = "unknown"
	// RunForgotten: the run is not known, and may have been before ids were forgotten.
	RunForgotten RunState = "forgotten"
)

// OK reports whether the request was accepted.
func (r Return) OK() bool { return r.Code == CodeSuccess }

// Unauthorized reports whether the peer has refused the token, or the app that was
// named with it: it has not looked at the request.
func (r Return) Unauthorized() bool { return unauthorized(r.Code, r.Msg) }

func unauthorized(code int, msg string) bool {
	return code != CodeSuccess && (msg == MsgTokenWrong || msg == MsgIdentityInvalid || msg == MsgIdentityEmpty)
}

// Note returns the note of an answer, wherever its peer has put it.
func (r Return) Note() string {
	if r.Data != "" {
		return r.Data
	}
	return r.Content
}

// Success is the plain positive answer.
func Success() Return { return Return{Code: CodeSuccess, Msg: MsgSuccess} }

// Noted is a positive answer with a note. Each generation of peers looks for the
// note under another key, so it is in all three.
func Noted(format string, args ...any) Return {
	note := fmt.Sprintf(format, args...)
	return Return{Code: CodeSuccess, Msg: note, Content: note, Data: note}
}

// Failf is a refusal with a formatted reason.
func Failf(format string, args ...any) Return {
	return Return{Code: CodeFail, Msg: fmt.Sprintf(format, args...)}
}

// Encode appends r as executors answer: keys without a value are absent.
func (r Return) Encode(dst []byte) []byte {
	w := json.WriteObject(dst)
	w.Number("code", int64(r.Code))
	w.TextIf("msg", r.Msg)
	w.TextIf("content", r.Content)
	w.TextIf("data", r.Data)
	w.TextIf("runState", string(r.RunState))
	w.TextIf("bootId", r.BootID)
	return w.End()
}

// Decode reads an answer of an executor or an admin of any generation. A note
// is a string, null or absent: an object is an error, as with Java peers.
//
// A list of failed results, which the Go client xxl-job-executor-go answers
// where it refuses a run, is read as a refusal with the list's text for a reason
// (docs/xxl-job.md, the Go client). Everything else that is not an object, an empty answer
// included, is an error: it does not tell whether the request was accepted.
func (r *Return) Decode(src []byte) error {
	v, err := json.Parse(src)
	if err != nil {
		return answerError(err)
	}
	*r = Return{}
	if v[0] == '[' {
		return r.decodeList(v)
	}
	return v.Object(func(key string, val json.Value) (err error) {
		switch key {
		case "code":
			r.Code, err = val.Int32()
		case "msg":
			r.Msg, err = val.Word()
		case "content":
			r.Content, err = val.Text()
		case "data":
			r.Data, err = val.Text()
		case "runState":
			var state string
			state, err = val.Text()
			r.RunState = RunState(state)
		case "bootId":
			r.BootID, err = val.Text()
		}
		return err
	})
}

// UnmarshalJSON is Decode.
func (r *Return) UnmarshalJSON(b []byte) error { return r.Decode(b) }

// maxText bounds what is kept, in bytes, of an answer that is no proper one.
const maxText = 500

// decodeList reads the refusal of a peer that answers results.
func (r *Return) decodeList(v json.Value) error {
	results, partly, err := decodeResults(v)
	if err != nil || partly != nil || len(results) == 0 {
		return errors.New("the answer is a list")
	}
	for _, res := range results {
		if res.HandleCode == CodeSuccess || res.HandleCode == 0 {
			return errors.New("the answer is a list of results")
		}
	}
	*r = Return{Code: CodeFail, Msg: cut(v, maxText)}
	return nil
}

// cut returns at most n bytes of a text, as valid UTF-8.
func cut(b []byte, n int) string {
	if len(b) > n {
		b = b[:n]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// decodeObject reads the body of a request, which is an object. Its errors are
// words for the peer.
func decodeObject(src []byte, field func(key string, val json.Value) error) error {
	v, err := json.Parse(src)
	if err == nil {
		err = v.Object(field)
	}
	if err != nil {
		return bodyError(err)
	}
	return nil
}

// bodyError puts what is wrong with a body into words.
func bodyError(err error) error {
	if errors.Is(err, json.ErrEmpty) {
		return errors.New("the body is empty")
	}
	return fmt.Errorf("the body is not understood: %w", err)
}

// answerError puts an error of json.Parse, which speaks of a body, into words about
// an answer.
func answerError(err error) error {
	if errors.Is(err, json.ErrEmpty) {
		return errors.New("the answer is empty")
	}
	return fmt.Errorf("the answer is %w", err)
}

// adminReturn is a Return as admins answer: both payload keys are there, null
// where they are empty, since every generation of executors accepts that (docs/xxl-job.md,
// bodies).
type adminReturn Return

// Encode appends r.
func (r adminReturn) Encode(dst []byte) []byte {
	w := json.WriteObject(dst)
	w.Number("code", int64(r.Code))
	w.TextOrNull("msg", r.Msg)
	w.TextOrNull("content", r.Content)
	w.TextOrNull("data", r.Data)
	return w.End()
}
