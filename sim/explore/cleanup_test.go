package explore

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/usercode"
)

// withInformer starts an informer on the engine's host in every world, and closes it at the
// end if clean is set.
func withInformer(clean bool) Config[world.Thing] {
	cfg := Things()
	cfg.Attach = func(w *world.World[world.Thing]) error {
		i, err := informer.New(informer.Config[world.Thing]{Source: w.Engine().Source(), Host: w.Engine().Host(), Name: "mirror"})
		if err == nil && clean {
			w.Cleanup(func() { err = errors.Join(err, i.Close()) })
		}
		return err
	}
	return cfg
}

func TestCleanup_EndsWhatAttachStarted(t *testing.T) {
	r, err := Run(t.Context(), seeds(withInformer(true), 0, 20))
	require.NoError(t, err)
	require.Nil(t, r.Finding, "%v", r.Finding)
	r, err = Run(t.Context(), seeds(withInformer(false), 0, 20))
	require.NoError(t, err)
	require.Equal(t, judge.NothingLeft, r.Finding.Invariant)
	require.Contains(t, r.Finding.ShortProblem, "mirror")
}

// However a world ends, all cleanups are called once, the last first.
func TestCleanup_IsCalledWhateverHappens(t *testing.T) {
	for what, attach := range map[string]func(*world.World[world.Thing]) error{
		"nothing": func(*world.World[world.Thing]) error { return nil },
		"a broken check": func(w *world.World[world.Thing]) error {
			w.Always("no", func() error { return errors.New("no") })
			return nil
		},
		"a panic":               func(w *world.World[world.Thing]) error { w.Always("no", func() error { panic("no") }); return nil },
		"attach that fails":     func(*world.World[world.Thing]) error { return errors.New("no") },
		"attach that panics":    func(*world.World[world.Thing]) error { panic("no") },
		"a cleanup that panics": func(w *world.World[world.Thing]) error { w.Cleanup(func() { panic("no") }); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			var called []string
			cfg := Things()
			cfg.Attach = func(w *world.World[world.Thing]) error {
				w.Cleanup(func() { called = append(called, "first") })
				w.Cleanup(func() { called = append(called, "second") })
				return attach(w)
			}
			_, err := Play(cfg, script.Draw(1, 9, 10))
			require.Equal(t, what == "attach that fails", err != nil)
			require.Equal(t, []string{"second", "first"}, called)
		})
	}
}

// A function of the user may end its goroutine, as t.FailNow does. Then the exploration has
// explored less than it says, which is an error and no success.
func TestRun_FailsIfTheUsersCodeEndsItsGoroutine(t *testing.T) {
	for what, end := range map[string]func(cfg *Config[world.Thing]){
		"attach": func(cfg *Config[world.Thing]) {
			attach := cfg.Attach
			cfg.Attach = func(w *world.World[world.Thing]) error {
				_ = attach(w)
				runtime.Goexit()
				return nil
			}
		},
		"a cleanup": func(cfg *Config[world.Thing]) {
			attach := cfg.Attach
			cfg.Attach = func(w *world.World[world.Thing]) error {
				err := attach(w)
				w.Cleanup(runtime.Goexit)
				w.Cleanup(runtime.Goexit)
				return err
			}
		},
		"progress": func(cfg *Config[world.Thing]) {
			cfg.OnProgress = func(Progress) { runtime.Goexit() }
		},
	} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s with %d workers", what, workers), func(t *testing.T) {
				var begun, ended atomic.Int32
				cfg := seeds(Things(), 0, 5)
				cfg.Workers = workers
				cfg.Attach = func(w *world.World[world.Thing]) error {
					begun.Add(1)
					w.Cleanup(func() { ended.Add(1) })
					return nil
				}
				end(&cfg)
				_, err := Run(t.Context(), cfg)
				require.ErrorIs(t, err, usercode.ErrGoexit)
				require.Positive(t, begun.Load())
				require.Equal(t, begun.Load(), ended.Load(), "cleanups are called")
			})
		}
	}
}
