package wire

import "context"

// Admin is what an executor calls. All methods are safe for concurrent use. See
// the package comment for the meaning of an error and of a code that is not 200.
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

// CallbackRequest is the result of one run.
type CallbackRequest struct {
	// LogID is the run's id.
	LogID int64 `json:"logId"`
	// LogDateTim is TriggerRequest.LogDateTime, in ms.
	LogDateTim int64 `json:"logDateTim"`
	// HandleCode is CodeSuccess, CodeFail or CodeTimeout.
	HandleCode int `json:"handleCode"`
	// HandleMsg is the result's text, absent when empty.
	HandleMsg string `json:"handleMsg,omitempty"`
	// NoRetry says that the run failed for good: another attempt cannot
	// succeed. Other peers do not send the key and ignore it.
	NoRetry bool `json:"noRetry,omitempty"`
	// Killed says that the run was not let finish: by a kill, a cover-early or a
	// shutdown. Other peers do not send the key and ignore it.
	Killed bool `json:"killed,omitempty"`
}

// GroupExecutor is the registry group of executors. The protocol knows another
// one, ADMIN, which nobody uses.
const GroupExecutor = "EXECUTOR"

// RegistryRequest names one address of one executor app.
type RegistryRequest struct {
	// RegistryGroup is GroupExecutor.
	RegistryGroup string `json:"registryGroup"`
	// RegistryKey is the app's name.
	RegistryKey string `json:"registryKey"`
	// RegistryValue is the executor's base address, normally with a trailing
	// slash. It stays the same to the byte for the life of a process.
	RegistryValue string `json:"registryValue"`
}
