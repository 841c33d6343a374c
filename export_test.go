package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What the tests, which are of package xxljob_test, see of the inside.

// ForNode is the config as the rooms have it.
func ForNode(c Config) core.Config { return c.forNode() }

// StatsOf and EventOf are what programs see of the rooms' values.
func StatsOf(s core.Stats) Stats  { return statsOf(s) }
func EventOf(e *core.Event) Event { return eventOf(e) }

// Complete is the config as New uses it.
func (c Config) Complete() core.Config { return c.forNode().WithDefaults() }

// Validate is what New finds wrong with the config.
func (c Config) Validate() error { return c.Complete().Validate() }

// TrustWindow is how long a beat is trusted, by complete settings.
func TrustWindow(complete core.Config) time.Duration {
	return core.TimesOf(&complete.Cluster).Window
}

// RingSlots is the number of slots of NewTimeRing.
const RingSlots = timering.Slots

// ScanPage is how many planned runs are read at a time: by so many may what a node
// holds of one app be over Config.Limits.MaxHeld.
const ScanPage = core.ScanRuns

// Held is how many planned runs of an app a node holds, and whether there are
// more in the store only.
func Held(s Scheduler, app string) (n int, bounded bool) { return s.(scheduler).HeldOf(app) }

// DialWith makes the scheduler speak to remote executors by other means than HTTP.
func DialWith(s Scheduler, dial func(app, address, token string) (wire.Executor, error)) {
	s.(scheduler).DialWith(dial)
}

// RunsInDoubt is how many runs the node has whose executor may or may not have them.
func RunsInDoubt(s Scheduler) int { return s.(scheduler).RunsInDoubt() }

// TakenUp is how many planned runs the node has found that nobody held.
func TakenUp(s Scheduler) int64 { return int64(s.(scheduler).Life.FaultCounts.PickedUp.Load()) }

// Unheld are those of the planned runs, all due within the window, that are the node's
// to start and that it neither holds nor is about to read.
func Unheld(s Scheduler, runs []store.Run) []store.Run { return s.(scheduler).Unheld(runs) }

// BadBooks says what is wrong with a node's books at a moment at which nothing is being
// called.
func BadBooks(s Scheduler) []string { return s.(scheduler).Check() }

// Rolled is how many registrations a node remembers.
func Rolled(s Scheduler) int { return s.(scheduler).Registered() }

// Goodbyes is how many addresses that are gone a node remembers.
func Goodbyes(s Scheduler) int { return s.(scheduler).Goodbyes() }

// SetAlarmMost makes a node keep no more alarms than n in memory.
func SetAlarmMost(s Scheduler, n int) { s.(scheduler).BoundAlarms(n) }
