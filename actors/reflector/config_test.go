package reflector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func TestConfig_ErrorsNameTheField(t *testing.T) {
	type config = reflector.Config
	for field, spoil := range map[string]func(*config){
		"Source":               func(c *config) { c.Source = nil },
		"Sink":                 func(c *config) { c.Sink = nil },
		"Rand":                 func(c *config) { c.Rand = nil },
		"Prefix":               func(c *config) { c.Prefix = "a//b" },
		"StateEvery":           func(c *config) { c.StateEvery = -1 },
		"PageSize":             func(c *config) { c.PageSize = -1 },
		"MaxBatch":             func(c *config) { c.MaxBatch = -1 },
		"ResumeAttempts":       func(c *config) { c.ResumeAttempts = -1 },
		"CallTimeout":          func(c *config) { c.CallTimeout = -1 },
		"Backoff.Initial":      func(c *config) { c.Backoff.Initial = -1 },
		"Backoff.Max":          func(c *config) { c.Backoff.Max = time.Millisecond },
		"Backoff.Factor":       func(c *config) { c.Backoff.Factor = math.NaN() },
		"Backoff.Jitter":       func(c *config) { c.Backoff.Jitter = -2 },
		"Backoff.HealthyAfter": func(c *config) { c.Backoff.HealthyAfter = -1 },
	} {
		t.Run(field, func(t *testing.T) {
			system := newSystem(t, actors.SystemConfig{})
			cfg := config{Source: newSource(), Sink: &mirror{}, Rand: rand.New(rand.NewPCG(1, 1))}
			spoil(&cfg)
			ref, err := reflector.Spawn(system, cfg)
			require.Nil(t, ref)
			var option *usercode.ConfigError
			require.ErrorAs(t, err, &option)
			require.Equal(t, field, option.Field)
			require.Contains(t, option.Problem, "; give ")
		})
	}
}

func TestConfig_ReportsEverythingAtOnce(t *testing.T) {
	_, err := reflector.Spawn(newSystem(t, actors.SystemConfig{}), reflector.Config{PageSize: -1})
	require.ErrorIs(t, err, usercode.ErrConfig)
	for _, field := range []string{"Source", "Sink", "Rand", "PageSize"} {
		require.ErrorContains(t, err, "invalid configuration: "+field)
	}
}

// traitless is a source whose Traits panic.
type traitless struct{ *source }

func (traitless) Traits() backend.Traits { panic("none") }

func TestSpawn_FailsIfTheSourceOrTheSystemDoes(t *testing.T) {
	system := newSystem(t, actors.SystemConfig{})
	cfg := reflector.Config{Source: traitless{newSource()}, Sink: &mirror{}, Rand: rand.New(rand.NewPCG(1, 1))}
	_, err := reflector.Spawn(system, cfg)
	require.ErrorIs(t, err, usercode.ErrPanic)

	require.NoError(t, system.Close(t.Context()))
	cfg.Source = newSource()
	_, err = reflector.Spawn(system, cfg)
	require.ErrorIs(t, err, actors.ErrStopping)
}

// However long it fails and whatever the numbers, a delay is a delay.
func TestBackoff_NeverOverflows(t *testing.T) {
	r := newFixture(t)
	r.source.fail("list", failures(5)...)
	cfg := r.config()
	cfg.Backoff = reflector.Backoff{Initial: math.MaxInt64, Max: math.MaxInt64, Factor: math.Inf(1), Jitter: 10}
	r.start(cfg)
	require.Equal(t, time.Duration(math.MaxInt64), r.ref.Stats().Delay)
}

func TestString_NamesTheReasonsOfRelists(t *testing.T) {
	stats := reflector.Stats{Relists: reflector.Relists{reflector.Started: 1, reflector.Behind: 20}}
	require.Contains(t, fmt.Sprintf("%+v", stats), " Relists:{Started:1 Behind:20} ")
	require.Contains(t, fmt.Sprintf("%+v", reflector.Stats{}), " Relists:{} ")
}

func TestString_NamesKindsReasonsAndPhases(t *testing.T) {
	require.Equal(t, "Replace", reflector.Replace.String())
	require.Equal(t, "Kind(9)", reflector.Kind(9).String())
	require.Equal(t, "none", reflector.Reason(0).String())
	require.Equal(t, "Requested", reflector.Requested.String())
	require.Equal(t, "Reason(99)", reflector.Reason(99).String())
	require.Equal(t, "watching", reflector.Watching.String())
	require.Equal(t, "Phase(99)", reflector.Phase(99).String())
}
