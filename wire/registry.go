package wire

import "strings"

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
func (r RegistryRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request, complete or not.
func (r *RegistryRequest) Decode(src []byte) error {
	*r = RegistryRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		switch key {
		case "registryGroup":
			r.RegistryGroup, err = val.text()
		case "registryKey":
			r.RegistryKey, err = val.text()
		case "registryValue":
			r.RegistryValue, err = val.text()
		case "bootId":
			r.BootID, err = val.text()
		case "capabilities":
			r.Capabilities, err = val.texts()
		}
		return err
	})
}
