// Package xxljobtest helps to test jobs: a handler by itself ([Work]), jobs on a
// scheduler with a store in memory ([New]), or the triggers that a scheduler sends to
// executors in other processes, with fakes of these ([NewExecutor]).
//
// It is made for [testing/synctest] bubbles, where a month of schedules passes
// in milliseconds:
//
//	func TestDaily(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) { // begins on 2000-01-01, UTC
//			s := xxljobtest.New(t, xxljob.Job{Key: "daily", Name: "Daily report", Handler: "report", Schedule: xxljob.Cron("0 0 3 * * ?")})
//			s.Handle("report", report)
//			time.Sleep(48 * time.Hour)
//			s.RequireRuns("daily", day(1), day(2))
//		})
//	}
//
// Everything works outside of a bubble too; there a scheduler goes by the clock on
// the wall, and tests use RunNow and WaitRun, which wait for no more than the
// end of a run. No function of this package sleeps.
//
// Helpers fail the test (Fatal) when something cannot be done, so they have to
// be called from the goroutine of the test.
package xxljobtest
