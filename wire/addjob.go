package wire

// AddJobRequest adds a job to an executor group. It is of G4.
type AddJobRequest struct {
	// JobGroup is the group's id, 32 bits wide.
	JobGroup int64 `json:"jobGroup"`
	JobDefinition
}

// Encode appends the request.
func (r AddJobRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request.
func (r *AddJobRequest) Decode(src []byte) error {
	*r = AddJobRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		if key != "jobGroup" {
			return r.field(key, val)
		}
		r.JobGroup, err = val.id32()
		return err
	})
}
