package console

// Which fields the form of a job has, in which order, and what XXL-JOB calls them.

import (
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	strategies "github.com/xxljob/xxljob/route"
)

// What the scheduler takes, beside what is said at the fields; the tests hold this against it.
const (
	aDay         = 24 * 3600 // seconds
	aMonth       = 31 * aDay
	mostFollowed = 100 // jobs that follow one, or that one follows
	mostTags     = 16
	mostTagBytes = 64
)

// formGroups are the fields of the form, in order. Those of the first two are always in sight; the
// others are folded up, and say what differs from the usual.
func formGroups() []formGroup {
	return []formGroup{{"what", whatFields()}, {"when", whenFields()}, {"how", howFields()}, {"again", againFields()}, {"chain", chainFields()}, {"who", whoFields()}}
}

// whatFields say what runs.
func whatFields() []formField {
	return []formField{
		text("name", "Name", aLine, 255, func(j *xxljob.Job) *string { return &j.Name }).called("job_desc"),
		text("app", "App", aLine, 64, func(j *xxljob.Job) *string { return &j.App }).called("job_group"),
		text("handler", "Handler", aLine, 255, func(j *xxljob.Job) *string { return &j.Handler }).called("executor_handler"),
		text(paramField, "Param", aText, 64<<10, func(j *xxljob.Job) *string { return &j.Param }).called("executor_param"),
		length("timeout", "Timeout", func(j *xxljob.Job) *time.Duration { return &j.Timeout }).called("executor_timeout").within(0, 1<<31-1),
		number("retries", "Retries", func(j *xxljob.Job) *int { return &j.Retries }).called("executor_fail_retry_count").within(0, 30_000),
		tagList("tags", "Tags", func(j *xxljob.Job) *[]string { return &j.Tags }),
	}
}

// paramField is the field of the parameter, which a host may have hidden.
const paramField = "param"

// whenFields say when it runs.
func whenFields() []formField {
	return []formField{
		choice("type", "Schedule.Type", scheduleTypes, func(j *xxljob.Job) *xxljob.ScheduleType { return &j.Schedule.Type }).called("schedule_type"),
		text("conf", "Schedule", aLine, 255, func(j *xxljob.Job) *string { return &j.Schedule.Conf }).called("schedule_conf"),
		text("zone", "Schedule.Zone", aLine, 64, func(j *xxljob.Job) *string { return &j.Schedule.Zone }),
		choice("dst", "Schedule.DST", list(xxljob.DSTCivil, xxljob.DSTQuartz), func(j *xxljob.Job) *xxljob.DST { return &j.Schedule.DST }),
	}
}

// howFields say how it runs.
func howFields() []formField {
	return []formField{
		choice("route", "Route", strategies.Names, func(j *xxljob.Job) *string { return &j.Route }).called("executor_route_strategy"),
		choice("block", "Block", block.Names, func(j *xxljob.Job) *string { return &j.Block }).called("executor_block_strategy"),
		number("maxper", "MaxPerExecutor", func(j *xxljob.Job) *int { return &j.MaxPerExecutor }).within(0, 10_000),
		choice("misfire", "Misfire", list(xxljob.MisfireDoNothing, xxljob.MisfireFireOnceNow), func(j *xxljob.Job) *xxljob.Misfire { return &j.Misfire }).called("misfire_strategy"),
		choice("catchup", "CatchUp", list("", xxljob.CatchUpEvery, xxljob.CatchUpOnce, xxljob.CatchUpEveryMissed), func(j *xxljob.Job) *xxljob.CatchUp { return &j.CatchUp }),
		number("catchupmost", "CatchUpMost", func(j *xxljob.Job) *int { return &j.CatchUpMost }).within(0, 1_000),
		length("catchupage", "CatchUpAge", func(j *xxljob.Job) *time.Duration { return &j.CatchUpAge }).within(60, 100*365*aDay),
		choice("onnoexecutor", "OnNoExecutor", list("", xxljob.OnNoExecutorWait, xxljob.OnNoExecutorRefuse), func(j *xxljob.Job) *xxljob.OnNoExecutor { return &j.OnNoExecutor }),
		length("lateafter", "LateAfter", func(j *xxljob.Job) *time.Duration { return &j.LateAfter }).within(1, aMonth),
		length("keepruns", "KeepRuns", func(j *xxljob.Job) *time.Duration { return &j.KeepRuns }).within(60, 100*365*aDay),
		moment("notbefore", "NotBefore", func(j *xxljob.Job) *time.Time { return &j.NotBefore }),
		moment("notafter", "NotAfter", func(j *xxljob.Job) *time.Time { return &j.NotAfter }),
		number("maxruns", "MaxRuns", func(j *xxljob.Job) *int { return &j.MaxRuns }).within(0, 1<<31-1),
		check("secret", "Secret", func(j *xxljob.Job) *bool { return &j.Secret }),
	}
}

// againFields say what follows a run that did not succeed.
func againFields() []formField {
	return []formField{
		length("retrypause", "RetryBackoff.First", func(j *xxljob.Job) *time.Duration { return &j.RetryBackoff.First }).within(0, 10_000*3600),
		length("retrypausemax", "RetryBackoff.Max", func(j *xxljob.Job) *time.Duration { return &j.RetryBackoff.Max }).within(1, 10_000*3600),
		number("jitter", "RetryBackoff.Jitter", func(j *xxljob.Job) *int { return &j.RetryBackoff.Jitter }).within(0, 100),
		check("retryaside", "RetryAside", func(j *xxljob.Job) *bool { return &j.RetryAside }),
		choice("onlost", "OnLost", list("", xxljob.OnLostRerun), func(j *xxljob.Job) *xxljob.OnLost { return &j.OnLost }),
		number("maxreruns", "MaxReruns", func(j *xxljob.Job) *int { return &j.MaxReruns }).within(0, 1_000),
		number("maxsnoozes", "MaxSnoozes", func(j *xxljob.Job) *int { return &j.MaxSnoozes }).within(0, 30_000),
	}
}

// chainFields say which jobs follow it, and which it follows.
func chainFields() []formField {
	return []formField{
		ids("children", "Children", func(j *xxljob.Job) *[]int64 { return &j.Children }).called("child_jobid"),
		keys("childkeys", "ChildKeys", func(j *xxljob.Job) *[]string { return &j.ChildKeys }),
		choice("childparam", "ChildParam", list("", xxljob.ChildParamParent, xxljob.ChildParamResult), func(j *xxljob.Job) *xxljob.ChildParam { return &j.ChildParam }),
		ids("after", "After", func(j *xxljob.Job) *[]int64 { return &j.After }),
		keys("afterkeys", "AfterKeys", func(j *xxljob.Job) *[]string { return &j.AfterKeys }),
		length("afterwindow", "AfterWindow", func(j *xxljob.Job) *time.Duration { return &j.AfterWindow }).within(1, aMonth),
		text("afterzone", "AfterZone", aLine, 64, func(j *xxljob.Job) *string { return &j.AfterZone }),
		length("aftertimeout", "AfterTimeout", func(j *xxljob.Job) *time.Duration { return &j.AfterTimeout }).within(1, aMonth),
	}
}

// whoFields say whose it is.
func whoFields() []formField {
	return []formField{
		text("key", "Key", aLine, 255, func(j *xxljob.Job) *string { return &j.Key }),
		text("author", "Author", aLine, 64, func(j *xxljob.Job) *string { return &j.Author }).called("author"),
		text("alarm", "AlarmEmail", aLine, 255, func(j *xxljob.Job) *string { return &j.AlarmEmail }).called("alarm_email"),
	}
}
