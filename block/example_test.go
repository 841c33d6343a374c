package block_test

import (
	"fmt"

	"github.com/xxljob/xxljob/block"
)

// An executor asks for every trigger it receives.
func ExampleDecide() {
	for _, strategy := range append(block.Names(), "SOMETHING_NEWER") {
		fmt.Println(strategy, block.Decide(strategy, false), block.Decide(strategy, true))
	}
	// Output:
	// SERIAL_EXECUTION start queue
	// DISCARD_LATER start discard
	// COVER_EARLY start cover
	// CONCURRENT start queue
	// SOMETHING_NEWER start queue
}

// An admin recognises a discarded trigger by the message alone.
func ExampleIsDiscard() {
	fmt.Println(block.IsDiscard("block strategy effect：Discard Later"))
	fmt.Println(block.IsDiscard("job handler [x] not found."))
	// Output:
	// true
	// false
}
