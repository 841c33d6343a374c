package failpoint

import (
	"slices"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got, err := Parse(" claim.begin:1:kill; finish.after_commit:3:stop\nstart.before_commit:2:sleep:20ms;*:1:block\n")
	want := []Rule{
		{"claim.begin", 1, Kill, 0},
		{"finish.after_commit", 3, Stop, 0},
		{"start.before_commit", 2, Sleep, 20 * time.Millisecond},
		{"*", 1, Block, 0},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Parse: %v %v, want %v", got, err, want)
	}
	for _, r := range want {
		if back, err := Parse(r.String()); err != nil || !slices.Equal(back, []Rule{r}) {
			t.Errorf("Parse(%q): %v %v", r, back, err)
		}
	}
	for _, bad := range []string{"claim.begin", "claim.begin:0:kill", "claim.begin:x:kill", "claims.begin:1:kill", "claim.begin:1:explode", "claim.begin:1:sleep", "claim.begin:1:kill:1s", "claim.begin:1:sleep:soon"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) is accepted", bad)
		}
	}
}

func TestAll(t *testing.T) {
	all := All()
	if len(all) != 84 || !slices.Contains(all, "trigger_tx.before_commit") {
		t.Errorf("All: %d names: %v", len(all), all)
	}
	Hit("claim.begin") // without a rule nothing happens
}
