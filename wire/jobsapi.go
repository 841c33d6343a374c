package wire

// How jobs are managed over the wire, and the messages of that, which are of G4.

import (
	"context"

	"github.com/xxljob/xxljob/wire/internal/json"
)

// JobAdmin is an Admin that has its jobs managed over the wire, as G4 does. It
// is found by a type assertion; without it those calls are unknown paths, as
// they are to earlier generations. All methods are safe for concurrent use. The
// caller's app is in [CallerFrom], and jobs of other apps are not there for it:
// real admins of G4 let any caller manage every job (docs/xxl-job.md, who may do what).
type JobAdmin interface {
	Admin
	// AddJob adds a job, stopped. Return.Data is its id in decimal digits.
	AddJob(ctx context.Context, req AddJobRequest) (Return, error)
	// UpdateJob replaces the definition of a job, but for type, source and remark of
	// its script: real admins change these by a form of their own.
	UpdateJob(ctx context.Context, req UpdateJobRequest) (Return, error)
	// RemoveJob removes a job. One that is not there is answered 200, for a retry.
	RemoveJob(ctx context.Context, req JobRequest) (Return, error)
	// StartJob starts the schedule of a job.
	StartJob(ctx context.Context, req JobRequest) (Return, error)
	// StopJob stops the schedule of a job.
	StopJob(ctx context.Context, req JobRequest) (Return, error)
	// TriggerJob runs a job once.
	TriggerJob(ctx context.Context, req TriggerJobRequest) (Return, error)
}

// JobDefinition is what G4 lets executors say about a job. Every field is a
// column of XXL-JOB's, with its stored values; the admin checks them. All are sent,
// also empty ones: a real admin stores null for an absent one and hands it on to its
// executors.
type JobDefinition struct {
	// Name is the job's title.
	Name string `json:"name"`
	// Author is the job's owner.
	Author string `json:"author"`
	// AlarmEmail is a list of addresses, separated by commas.
	AlarmEmail string `json:"alarmEmail"`
	// ScheduleType is NONE, CRON or FIX_RATE, or one of our own.
	ScheduleType string `json:"scheduleType"`
	// ScheduleConf is the cron expression, or the period in seconds.
	ScheduleConf string `json:"scheduleConf"`
	// MisfireStrategy is DO_NOTHING or FIRE_ONCE_NOW.
	MisfireStrategy string `json:"misfireStrategy"`
	// ExecutorRouteStrategy names a route, such as ROUND.
	ExecutorRouteStrategy string `json:"executorRouteStrategy"`
	// ExecutorHandler is the name of the handler.
	ExecutorHandler string `json:"executorHandler"`
	// ExecutorParam is the parameter. Absent and empty are the same.
	ExecutorParam string `json:"executorParam"`
	// ExecutorBlockStrategy is as in TriggerRequest.
	ExecutorBlockStrategy string `json:"executorBlockStrategy"`
	// ExecutorTimeout is in seconds, 32 bits wide. Zero and less mean none.
	ExecutorTimeout int `json:"executorTimeout"`
	// ExecutorFailRetryCount is how often a failed run is tried again, 32 bits
	// wide.
	ExecutorFailRetryCount int `json:"executorFailRetryCount"`
	// GlueType is GlueBean, or the language of GlueSource.
	GlueType string `json:"glueType"`
	// GlueSource is the text of a script.
	GlueSource string `json:"glueSource"`
	// GlueRemark is a note on the version of the script.
	GlueRemark string `json:"glueRemark"`
}

func (d *JobDefinition) field(key string, val json.Value) (err error) {
	switch key {
	case "name":
		d.Name, err = val.Text()
	case "author":
		d.Author, err = val.Text()
	case "alarmEmail":
		d.AlarmEmail, err = val.Text()
	case "scheduleType":
		d.ScheduleType, err = val.Text()
	case "scheduleConf":
		d.ScheduleConf, err = val.Text()
	case "misfireStrategy":
		d.MisfireStrategy, err = val.Text()
	case "executorRouteStrategy":
		d.ExecutorRouteStrategy, err = val.Text()
	case "executorHandler":
		d.ExecutorHandler, err = val.Text()
	case "executorParam":
		d.ExecutorParam, err = val.Text()
	case "executorBlockStrategy":
		d.ExecutorBlockStrategy, err = val.Text()
	case "executorTimeout":
		d.ExecutorTimeout, err = val.Int32()
	case "executorFailRetryCount":
		d.ExecutorFailRetryCount, err = val.Int32()
	case "glueType":
		d.GlueType, err = val.Text()
	case "glueSource":
		d.GlueSource, err = val.Text()
	case "glueRemark":
		d.GlueRemark, err = val.Text()
	}
	return err
}

// AddJobRequest adds a job to an executor group. It is of G4.
type AddJobRequest struct {
	// JobGroup is the group's id, 32 bits wide.
	JobGroup int64 `json:"jobGroup"`
	JobDefinition
}

// Encode appends the request.
func (r AddJobRequest) Encode(dst []byte) []byte { return json.Encode(dst, r) }

// Decode reads a request.
func (r *AddJobRequest) Decode(src []byte) error {
	*r = AddJobRequest{}
	return decodeObject(src, func(key string, val json.Value) (err error) {
		if key != "jobGroup" {
			return r.field(key, val)
		}
		r.JobGroup, err = val.ID32()
		return err
	})
}

// UpdateJobRequest replaces the definition of a job, but for type, source and remark of
// its script, which admins leave alone whatever it says. It is of G4, whose admins clear
// the job's children with it.
type UpdateJobRequest struct {
	// ID is the job's id, 32 bits wide.
	ID int64 `json:"id"`
	JobDefinition
}

// Encode appends the request.
func (r UpdateJobRequest) Encode(dst []byte) []byte { return json.Encode(dst, r) }

// Decode reads a request.
func (r *UpdateJobRequest) Decode(src []byte) error {
	*r = UpdateJobRequest{}
	return decodeObject(src, func(key string, val json.Value) (err error) {
		if key != "id" {
			return r.field(key, val)
		}
		r.ID, err = val.ID32()
		return err
	})
}

// JobRequest names a job that is to be removed, started or stopped. It is of G4.
type JobRequest struct {
	// ID is the job's id, 32 bits wide.
	ID int64 `json:"id"`
}

// Encode appends the request.
func (r JobRequest) Encode(dst []byte) []byte { return json.Encode(dst, r) }

// Decode reads a request.
func (r *JobRequest) Decode(src []byte) error {
	*r = JobRequest{}
	return decodeObject(src, func(key string, val json.Value) (err error) {
		if key == "id" {
			r.ID, err = val.ID32()
		}
		return err
	})
}

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
func (r TriggerJobRequest) Encode(dst []byte) []byte { return json.Encode(dst, r) }

// Decode reads a request.
func (r *TriggerJobRequest) Decode(src []byte) error {
	*r = TriggerJobRequest{}
	return decodeObject(src, func(key string, val json.Value) (err error) {
		switch key {
		case "id":
			r.ID, err = val.ID32()
		case "executorParam":
			r.ExecutorParam, err = val.Text()
		case "addressList":
			r.AddressList, err = val.Text()
		}
		return err
	})
}
