package wire

// UpdateJobRequest replaces the definition of a job, but for type, source and remark of
// its script, which admins leave alone whatever it says. It is of G4, whose admins clear
// the job's children with it.
type UpdateJobRequest struct {
	// ID is the job's id, 32 bits wide.
	ID int64 `json:"id"`
	JobDefinition
}

// Encode appends the request.
func (r UpdateJobRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request.
func (r *UpdateJobRequest) Decode(src []byte) error {
	*r = UpdateJobRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		if key != "id" {
			return r.field(key, val)
		}
		r.ID, err = val.id32()
		return err
	})
}
