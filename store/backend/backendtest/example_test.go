package backendtest_test

import (
	"fmt"

	"github.com/watchmill/watchmill/store/backend/backendtest"
)

// The checks can also be run one by one, on any T.
func ExampleChecks() {
	for _, check := range backendtest.Checks()[:3] {
		fmt.Println(check.Name)
	}
	// Output:
	// Create_StoresWhatItReturns
	// Create_WithTTLIsDeletedInTime
	// Create_OfAnExistingKeyFails
}
