package usercode_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/usercode"
)

func ExampleName() {
	fmt.Println(usercode.Name{Given: "billing", Made: usercode.Caller(0)})
	fmt.Println(usercode.Name{Made: usercode.Caller(0)})
	fmt.Println(usercode.Name{})
	// Output:
	// billing
	// usercode/name_test.go:14
	// unnamed
}

// registrar stands for a package with a generic façade over an untyped core.
type registrar[T any] struct{}

func (registrar[T]) register() usercode.Place { return usercode.Caller(1) }

func TestCaller_IsTheLineThatCalledAnInlinedGenericMethod(t *testing.T) {
	var r registrar[int]
	place := r.register()
	require.Equal(t, "usercode/name_test.go:29", place.String())
	through := interface{ register() usercode.Place }(r).register()
	require.Equal(t, "usercode/name_test.go:31", through.String())
	require.Equal(t, "usercode/name_test.go:29", place.String(), "it is looked up once")
}

func TestCaller_CostsNoAllocation(t *testing.T) {
	var r registrar[string]
	require.Zero(t, testing.AllocsPerRun(100, func() { r.register() }))
}
