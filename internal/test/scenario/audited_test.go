package scenario_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// TestMain: most of what fails here is a run that was lost or doubled, came early, or is stuck.
// In virtual time a test waits for nothing but a processor, so no more of them run beside each other
// than there are processors, whatever -parallel says for packages that wait.
func TestMain(m *testing.M) {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if n, err := strconv.Atoi(parallel.String()); err == nil && n > runtime.GOMAXPROCS(0) {
		if err := parallel.Set(strconv.Itoa(runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	os.Exit(stage.Audited(m))
}
