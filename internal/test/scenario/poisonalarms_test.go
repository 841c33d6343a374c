package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestRefusedRule: rules of alarms of which the store refuses one tell of what they want but for that
// one, which is a trouble by its name, and tells when the store keeps it. One of its store's that refuses
// them all holds nothing up, and is not asked without a pause.
func TestRefusedRule(t *testing.T) {
	t.Parallel()
	for _, refuses := range []string{"rule-7", "rule-"} {
		t.Run(refuses, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sinks := map[string]*sink{}
				a := stage.NewNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) {
					for i := range 20 {
						name, s := fmt.Sprint("rule-", i), &sink{began: time.Now()}
						c.Alarms, sinks[name] = append(c.Alarms, alarm.Rule{Name: name, To: s}), s
					}
				})
				stage.Must(t, a.Handle("try", failsAlways))
				remove := a.Faults.Inject("KeepRules", storetest.Fault{Poison: func(member any) bool {
					name := member.(store.AlarmRule).Name
					return strings.HasPrefix(name, refuses) && (name == refuses || strings.HasSuffix(refuses, "-"))
				}})
				stage.Must(t, a.Start(t.Context()))
				tell := func(what, job string, told func(rule string) bool) {
					t.Helper()
					stage.TriggerNew(t, a, xxljob.Job{Key: job, Name: job, Handler: "try"})
					time.Sleep(time.Minute)
					for rule, s := range sinks {
						n := 0
						for _, m := range s.messages() {
							n += stage.One(m.JobKey == job && m.Cause == alarm.Failed)
						}
						if n != stage.One(told(rule)) {
							t.Errorf("%s: %s has told of %s %d times", what, rule, job, n)
						}
					}
				}
				tell("while it is refused", "first", func(rule string) bool { return !strings.HasPrefix(rule, refuses) })
				all := a.Troubles()
				if len(all) != 1 || all[0].Cause != xxljob.TroubleRefused || all[0].App != "app" || !strings.Contains(all[0].Detail, "some rules of alarms, which tell of nothing: rule-") {
					t.Errorf("troubles %v", all)
				}
				stage.Must(t, a.Ready())
				calls := a.Faults.Calls("KeepRules")
				time.Sleep(time.Minute)
				if n := a.Faults.Calls("KeepRules") - calls; n > 6*20 {
					t.Errorf("%d calls in a minute", n)
				}
				remove()
				time.Sleep(time.Minute)
				tell("when it is kept", "second", func(string) bool { return true })
				if all := a.Troubles(); len(all) != 0 {
					t.Errorf("then troubles %v", all)
				}
				stage.Stop(t, a)
			})
		})
	}
}
