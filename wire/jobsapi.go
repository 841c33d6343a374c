package wire

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

func (d *JobDefinition) field(key string, val value) (err error) {
	switch key {
	case "name":
		d.Name, err = val.text()
	case "author":
		d.Author, err = val.text()
	case "alarmEmail":
		d.AlarmEmail, err = val.text()
	case "scheduleType":
		d.ScheduleType, err = val.text()
	case "scheduleConf":
		d.ScheduleConf, err = val.text()
	case "misfireStrategy":
		d.MisfireStrategy, err = val.text()
	case "executorRouteStrategy":
		d.ExecutorRouteStrategy, err = val.text()
	case "executorHandler":
		d.ExecutorHandler, err = val.text()
	case "executorParam":
		d.ExecutorParam, err = val.text()
	case "executorBlockStrategy":
		d.ExecutorBlockStrategy, err = val.text()
	case "executorTimeout":
		d.ExecutorTimeout, err = val.int32()
	case "executorFailRetryCount":
		d.ExecutorFailRetryCount, err = val.int32()
	case "glueType":
		d.GlueType, err = val.text()
	case "glueSource":
		d.GlueSource, err = val.text()
	case "glueRemark":
		d.GlueRemark, err = val.text()
	}
	return err
}
