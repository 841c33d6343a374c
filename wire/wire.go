// Package wire holds what an admin and an executor say to each other: the
// messages of XXL-JOB's protocol with its own field names, widths and units, one
// interface for each direction, and for each interface a client and an
// [net/http.Handler].
//
// [Executor] is what an admin calls and [Admin] is what an executor calls. An
// in-process peer implements them directly and a remote one through
// [ExecutorClient] or [AdminClient], so that neither side can tell whether a
// call left the process. [NewExecutorHandler] and [NewAdminHandler] are the
// other ends.
//
// Every call of the two interfaces has three outcomes, and callers must tell
// them apart:
//
//   - accepted: the error is nil and [Return.OK] is true;
//   - refused: the error is nil and the code is not 200. Nothing was done,
//     another peer may be asked;
//   - unknown: the error is not nil. The transport failed, the peer may or may
//     not have done the work, and only a later answer can tell. The one
//     exception are errors for which [NotSent] is true: nothing of the request
//     has left this process, and another peer may be asked.
//
// The protocol has five generations. G0 (up to 2.1) is no JSON at executors and
// is not spoken here; G1 (2.2), G2 (2.3 to 3.2), G3 (3.3 and 3.4) and G4 (3.5)
// are. Clients find out what a peer speaks by its answers, and handlers accept
// all of them side by side; nothing is configured.
//
// Messages have Encode and Decode methods. Encode appends to a slice, as JSON
// without the escaping of HTML. Decode reads what any of the generations
// writes, as leniently as the Java peers do: unknown keys are ignored, null is
// the same as absent, a number may come as a string and a string as a number.
// It refuses, with words that may be sent to the peer, what is not JSON, has
// something behind it, has another type, does not fit its width, has a key
// twice or is nested more than 32 deep. Nothing decoded refers to the bytes it
// came from.
//
// Integer widths are those of the Java peers: jobId, timeouts, shard numbers
// and line numbers are 32 bits wide, run ids (logId) and times are 64 bits wide.
// Times are milliseconds since the Unix epoch, timeouts are seconds.
package wire

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

// Headers of every request, in both directions.
const (
	// HeaderToken carries the access token. Peers without one omit it or send
	// it empty.
	HeaderToken = "XXL-JOB-ACCESS-TOKEN"
	// HeaderApp carries the name of the executor app that the request is from, or
	// to. Peers of G4 and ours send it, and earlier ones ignore it.
	HeaderApp = "XXL-JOB-APPNAME"
	// headerRPC is the token header of G0.
	headerRPC = "XXL-RPC-ACCESS-TOKEN"
)
