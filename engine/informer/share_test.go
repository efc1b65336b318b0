package informer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// countedCore adds handlers and counts how often any is asked whether it has ended.
type countedCore struct {
	informerCore
	ended chan struct{}
	asked int
}

type countedHandler struct {
	registrationCore
	core *countedCore
	done chan struct{}
}

func (c *countedCore) addHandler(func(notification), HandlerOptions) (*Registration, error) {
	return &Registration{countedHandler{core: c, done: c.ended}}, nil
}

func (h countedHandler) ended() <-chan struct{} {
	h.core.asked++
	return h.done
}

func TestShare_KeepsHandlersAtLittleCost(t *testing.T) {
	const many = 1000
	core := &countedCore{ended: make(chan struct{})}
	through := leased{core, &share{}}
	add := func() {
		for range many {
			_, err := through.addHandler(nil, HandlerOptions{})
			require.NoError(t, err)
		}
	}
	add()
	require.Len(t, through.share.handlers, many)
	require.Less(t, core.asked, 2*many)
	close(core.ended)
	add()
	require.Less(t, len(through.share.handlers), many)
	add()
	require.Less(t, len(through.share.handlers), many/10, "those that have ended")
	require.Less(t, core.asked, 8*many)
}
