// Package wire holds what an admin and an executor say to each other: the
// messages of XXL-JOB's protocol with its own field names, widths and units, and
// one interface for each direction.
//
// [Executor] is what an admin calls and [Admin] is what an executor calls. An
// in-process peer implements them directly and a remote one through a
// client, so that neither side can tell whether a call left the process.
//
// Every call of the two interfaces has three outcomes, and callers must tell
// them apart:
//
//   - accepted: the error is nil and [Return.OK] is true;
//   - refused: the error is nil and the code is not 200. Nothing was done,
//     another peer may be asked;
//   - unknown: the error is not nil. The transport failed, the peer may or may
//     not have done the work, and only a later answer can tell.
//
// Integer widths are those of the Java peers: jobId, timeouts, shard numbers
// and line numbers are 32 bits wide, run ids (logId) and times are 64 bits wide.
// Times are milliseconds since the Unix epoch, timeouts are seconds.
package wire

import "fmt"

// Codes of a [Return] and of [CallbackRequest.HandleCode]. Any other code that
// is not 200 means failure too.
const (
	// CodeSuccess says that the request was accepted or the run succeeded.
	CodeSuccess = 200
	// CodeFail says that the request was refused or the run failed.
	CodeFail = 500
	// CodeTimeout says that the run took longer than its timeout.
	CodeTimeout = 502
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
}

// OK reports whether the request was accepted.
func (r Return) OK() bool { return r.Code == CodeSuccess }

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
