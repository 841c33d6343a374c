package wire

// TriggerJobRequest runs a job once. It is of G4.
type TriggerJobRequest struct {
	// ID is the job's id, 32 bits wide.
	ID int64 `json:"id"`
	// ExecutorParam is the parameter of this run. Absent, null and empty are the
	// same: the run has none, whatever the job's own is.
	ExecutorParam string `json:"executorParam"`
	// AddressList holds the addresses to route to, separated by commas. Empty
	// means those of the group.
	AddressList string `json:"addressList"`
}

// Encode appends the request.
func (r TriggerJobRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request.
func (r *TriggerJobRequest) Decode(src []byte) error {
	*r = TriggerJobRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		switch key {
		case "id":
			r.ID, err = val.id32()
		case "executorParam":
			r.ExecutorParam, err = val.text()
		case "addressList":
			r.AddressList, err = val.text()
		}
		return err
	})
}
