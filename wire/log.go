package wire

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
	return encode(dst, struct {
		LogRequest
		LogDateTime int64 `json:"logDateTime"`
	}{r, r.LogDateTim})
}

// Decode reads a request, with the date under either spelling; of two, one that
// is not zero.
func (r *LogRequest) Decode(src []byte) error {
	*r = LogRequest{}
	var dateTime int64
	err := decodeObject(src, func(key string, val value) (err error) {
		switch key {
		case "logDateTim":
			r.LogDateTim, err = val.int64()
		case "logDateTime":
			dateTime, err = val.int64()
		case "logId":
			r.LogID, err = val.int64()
		case "fromLineNum":
			r.FromLineNum, err = val.int32()
		case "tail":
			r.Tail, err = val.int32()
		}
		return err
	})
	if r.LogDateTim == 0 {
		r.LogDateTim = dateTime
	}
	return err
}
