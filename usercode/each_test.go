package usercode_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/usercode"
)

func TestEach_LeavesNoItemOut(t *testing.T) {
	for name, bad := range map[string]func(){"": func() {}, "panic": func() { panic("bad") }, "Goexit": runtime.Goexit} {
		var called []int
		returned := false
		var over sync.WaitGroup
		over.Go(func() {
			defer func() { _ = recover() }()
			usercode.Each([]int{1, 2, 3, 4}, func(i int) {
				called = append(called, i)
				if i%2 == 0 {
					bad()
				}
			})
			returned = true
		})
		over.Wait()
		require.Equal(t, []int{1, 2, 3, 4}, called, name)
		require.Equal(t, name == "", returned, name)
	}
}
