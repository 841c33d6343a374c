package xxljob_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// TestValidateWithoutApp: an empty Job.App means Config.App, so it is no fault
// of the definition. AddJob takes the job, Validate refuses it.
func TestValidateWithoutApp(t *testing.T) {
	if err := (xxljob.Job{Name: "nightly", Handler: "h"}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestZeroConfigOfLongProgram: the zero Config is complete, whatever the program
// is called. App is cut to its bound, Node is not.
func TestZeroConfigOfLongProgram(t *testing.T) {
	defer func(name string) { os.Args[0] = name }(os.Args[0])
	os.Args[0] = "/usr/bin/" + strings.Repeat("x", 200)
	if _, err := xxljob.New(memory.New(), xxljob.Config{}); err != nil {
		t.Errorf("%.120v", err)
	}
}

// TestConfigLocationIsIANA: Config.Location is an IANA zone. Another one passes
// New, and then every cron job is refused (Asia/Nowhere), or runs by UTC without
// a word (a zone without a name).
func TestConfigLocationIsIANA(t *testing.T) {
	for _, name := range []string{"Asia/Nowhere", ""} {
		if _, err := xxljob.New(memory.New(), xxljob.Config{Location: time.FixedZone(name, 3600)}); err == nil || !strings.Contains(err.Error(), "Location") {
			t.Errorf("zone %q: %v", name, err)
		}
	}
}
