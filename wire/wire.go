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
//     not have done the work, and only a later answer can tell. The
//     exceptions are errors for which [NotSent] is true: nothing of the request
//     has left this process, and another peer may be asked; and, at executors, those for
//     which [TurnedAway] is true: what stands in between has not let it through.
//
// The protocol has five generations. G0 (up to 2.1) is no JSON at executors and
// is not spoken here; G1 (2.2), G2 (2.3 to 3.2), G3 (3.3 and 3.4) and G4 (3.5)
// are. Clients find out what a peer speaks by its answers, and handlers accept
// all of them side by side; nothing is configured.
//
// Messages have Encode and Decode methods. Encode appends to a slice, as JSON
// without the escaping of HTML. Decode reads what any of the generations
// writes, as leniently as the Java peers do: unknown keys are ignored, null is
// the same as absent, a number may come as a string and a string as a number, and
// what is no JSON is read where it can mean one thing only: a line feed in a
// text, single quotes or none, comments, a comma before a bracket, a byte order
// mark. It refuses, with words that may be sent to the peer, what cannot be read
// so, has something behind it, has another type, does not fit its width, has a key
// twice or is nested more than 32 deep. Nothing decoded refers to the bytes it
// came from.
//
// Integer widths are those of the Java peers: jobId, timeouts, shard numbers
// and line numbers are 32 bits wide, run ids (logId) and times are 64 bits wide.
// Times are milliseconds since the Unix epoch, timeouts are seconds.
package wire

// What both directions share: the texts of the protocol, codes and headers.

// Texts of the protocol. Peers and their users match on them, so they are kept
// to the letter, odd spelling and trailing blanks included. Those with a verb
// are formats.

// Answers of an executor.
const (
	// MsgSuccess is the message of a plain positive answer.
	MsgSuccess = "Success"
	// MsgHandlerNotFound refuses a run; the argument is the handler's name.
	MsgHandlerNotFound = "job handler [%s] not found."
	// MsgGlueType refuses a run; the argument is the unknown glue type.
	MsgGlueType = "glueType[%s] is not valid."
	// MsgBusy answers an idle beat.
	MsgBusy = "job thread is running or has trigger queue."
	// MsgRepeat answers a run id that was accepted before; the argument is the
	// id.
	MsgRepeat = "repeat trigger job, logId:%d"
	// MsgRepeatEnded answers, at our own executors, a run id that was accepted
	// before and has ended: its result was delivered or is on its way, and will
	// not come again.
	MsgRepeatEnded = "repeat trigger job, logId:%d, ended"
	// MsgOtherBoot refuses, at our own executors, a run that is meant for another
	// process at the address: see TriggerRequest.BootID.
	MsgOtherBoot = "another process was meant: the executor has been restarted."
	// MsgForgotten refuses, at our own executors, a run that is sent again after so
	// long that they may have forgotten it: see TriggerRequest.AgainAfter.
	MsgForgotten = "sent again, logId:%d: whether it has run is not known any more."
	// MsgWithdrawn refuses, at our own executors, a start of a run that they have said
	// before that they do not know: see IdleBeatRequest. The argument is the run's id.
	// Its scheduler has gone on without it.
	MsgWithdrawn = "start withdrawn, logId:%d: the executor was asked about it before it arrived."
	// MsgAlreadyKilled answers a kill that found nothing to kill.
	MsgAlreadyKilled = "job thread already killed."
	// MsgNoLog is the content of a log that does not exist.
	MsgNoLog = "readLog fail, logFile not exists"
)

// Results of runs that did not end by their own handler.
const (
	// MsgTimeout is the result of a run that took too long.
	MsgTimeout = "job execute timeout "
	// MsgKilledRunning is the result of a run stopped while its handler ran; the
	// argument is the reason.
	MsgKilledRunning = "%s [job running, killed]"
	// MsgKilledQueued is the result of a run stopped before its handler ran; the
	// argument is the reason.
	MsgKilledQueued = "%s [job not executed, in the job queue, killed.]"
	// MsgResultLost is the result of a run whose handler left none.
	MsgResultLost = "job handle result lost."
	// MsgScriptExit is the result of a failed script; the argument is its exit
	// code.
	MsgScriptExit = "script exit value(%d) is failed"
)

// Reasons a run is stopped for, the arguments of MsgKilledRunning and
// MsgKilledQueued.
const (
	// StopKill is a kill asked for by the admin.
	StopKill = "scheduling center kill job."
	// StopShutdown is the end of the executor's process.
	StopShutdown = "web container destroy and kill the job."
)

// Refusals that belong to the transport, both directions.
const (
	MsgMethod          = "invalid request, HttpMethod not support."
	MsgURIEmpty        = "invalid request, uri-mapping empty."
	MsgURINotFound     = "invalid request, uri-mapping(%s) not found."
	MsgBodyEmpty       = "invalid request, requestBody empty."
	MsgTokenWrong      = "The access token is wrong."
	MsgIdentityEmpty   = "invalid request, accessToken or appname is empty."
	MsgIdentityInvalid = "invalid request, accessToken or appname invalid."
	MsgRequestError    = "request error:%s"
	MsgIllegalArgument = "Illegal Argument."
	// MsgInvokeError wraps what an admin could not make sense of; the argument is
	// the reason. MsgRequestError is the same at an executor.
	MsgInvokeError = "openapi invoke error: %s"
	// MsgTooMany answers, with CodeTimeout, more calls than a G4 admin takes.
	MsgTooMany = "Too many requests, please try again later."
)

// Words of our own, for peers of G0.
const (
	// MsgOldExecutor refuses an executor before XXL-JOB 2.2.0 that registers or
	// reports, and is the reason of a call to one.
	MsgOldExecutor = "executors before XXL-JOB 2.2.0 speak xxl-rpc, not JSON over HTTP, and cannot be served: update the executor"
)

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
