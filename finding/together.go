package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// appsNamed is how many apps the sentence of a finding of several names.
const appsNamed = 3

// neverOne is what the Detail of [NoExecutor] ends with where the app has never had an executor.
const neverOne = ", and there never was one"

// isDark reports whether a finding is an app without an executor, as the store has it.
func isDark(f Finding) bool { return f.Cause == NoExecutor && f.Trouble == nil && f.App != "" }

// Together puts findings into one that one line can tell: apps without an executor, which mostly have one
// reason. Its Apps are these apps, those first that had executors, in the order in which they lost them; its
// figures are sums, and it is there since the first of them. It stands where the first of them stood; all
// else stays as it is. A mute is of one app, so whoever shows findings takes out first what is muted.
func Together(found []Finding) []Finding {
	var dark []Finding
	for _, f := range found {
		if isDark(f) {
			dark = append(dark, f)
		}
	}
	if len(dark) < 2 {
		return found
	}
	slices.SortStableFunc(dark, func(x, y Finding) int {
		if x.Since.IsZero() == y.Since.IsZero() {
			return x.Since.Compare(y.Since)
		}
		return -x.Since.Compare(y.Since)
	})
	all, never := Finding{Cause: NoExecutor, Since: dark[0].Since}, true
	for _, f := range dark {
		all.Apps = append(all.Apps, f.App)
		all.Enabled, all.Waiting, all.Late = all.Enabled+f.Enabled, all.Waiting+f.Waiting, max(all.Late, f.Late)
		all.Runs = append(all.Runs, f.Runs...)
		never = never && strings.HasSuffix(f.Detail, neverOne)
	}
	slices.SortFunc(all.Runs, func(x, y int64) int { return cmp.Compare(y, x) })
	all.Runs = all.Runs[:min(len(all.Runs), MostRuns)]
	if all.Detail = fmt.Sprintf("enabled jobs: %d", all.Enabled); all.Enabled == 0 { // why they are wanted is the same of all
		all.Detail = strings.TrimSuffix(dark[0].Detail, neverOne)
	}
	if never {
		all.Detail += neverOne
	}
	at := slices.IndexFunc(found, isDark)
	return slices.Insert(slices.DeleteFunc(slices.Clone(found), isDark), at, all)
}
