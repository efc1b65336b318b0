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
	// Row001_CreateStoresWhatItReturns
	// Row002_CreateWithTTLIsDeletedInTime
	// Row003_CreateOfAnExistingKeyFails
}
