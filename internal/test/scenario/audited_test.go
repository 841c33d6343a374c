package scenario_test

import (
	"os"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// TestMain: most of what fails here is a run that was lost or doubled, came early, or is stuck.
func TestMain(m *testing.M) { os.Exit(stage.Audited(m)) }
