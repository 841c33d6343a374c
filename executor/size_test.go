package executor

import (
	"testing"
	"unsafe"
)

// TestARunFitsItsSize: one is made for each trigger, and the next more that the runtime allocates is 512 bytes.
func TestARunFitsItsSize(t *testing.T) {
	if n := unsafe.Sizeof(run{}); unsafe.Sizeof(n) == 8 && n > 480 {
		t.Errorf("a run takes %d bytes, and was to fit in 480", n)
	}
}
