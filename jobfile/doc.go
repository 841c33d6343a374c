// Package jobfile reads and writes jobs as a file of JSON: what a program keeps beside its code, what
// the console exports, and what the standalone program is started with.
//
//	//go:embed jobs.json
//	var file []byte
//
//	jobs, err := jobfile.Read(bytes.NewReader(file))
//	if err != nil {
//		log.Fatal(err) // every fault of the file, each with line and column
//	}
//	_, err = s.EnsureJobs(ctx, "", jobs, xxljob.EnsureOptions{Prune: true})
//
// # The format
//
// A file is a list of jobs, or an object with the list and what it is:
//
//	{"format": "xxljob-jobs", "formatVersion": 2, "exportedAt": "2027-03-01T14:02:05.123Z", "jobs": [
//	  {"app": "orders", "name": "Nightly export", "handler": "export", "timeout": "20m",
//	   "schedule": {"type": "CRON", "conf": "0 0 3 * * ?", "zone": "Europe/Berlin"}}
//	]}
//
// The fields of a job are those of [store.Job] that a definition has, each with a small first letter:
// "maxRuns" is MaxRuns. Lengths of time are texts with their units, such as "1h30m", times are RFC 3339,
// and what has names, such as "misfire" or "route", has those that XXL-JOB stores ("FIRE_ONCE_NOW"). What
// is absent has its zero value, and what that stands for is said by the field. "leftOut" names fields that
// the job has and the file has not, or not all of; such a job is not read before somebody has completed
// it and taken "leftOut" away.
//
// A field that there is not, one that is there twice, null, a number for a length of time, text that is no
// UTF-8, and whatever else is not understood or not valid in a job is an error, never left out in
// silence. A byte order mark in front is passed over. A file has [MaxSize] bytes at most.
package jobfile
