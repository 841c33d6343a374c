package wire

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
