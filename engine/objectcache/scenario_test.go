package objectcache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// TestCache_Scenarios runs the texts in testdata/scenarios on a deterministic host.
// The commands are:
//
//	acquire NAME KEY          a reference, called NAME
//	get NAME                  what it reads
//	release NAME              give it back
//	put KEY DATA [immutable]  create or replace an object
//	delete KEY
//	advance D                 time passes
//	down, up                  the source refuses lists; it does so no more
//	break                     the watches that run are broken
//	shut                      the source is closed
//	close                     the cache is closed
//
// Each prints its result, and then the keys that are followed.
func TestCache_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &scenario{fixture: newOpenFixture(t, 1), refs: map[string]*objectcache.Ref[secret]{}}
		defer s.close()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			result, err := s.run(d)
			if err != nil {
				result = err.Error()
			}
			s.settle()
			return result + "\n" + s.following()
		})
	})
}

type scenario struct {
	*fixture
	refs map[string]*objectcache.Ref[secret]
}

func (s *scenario) run(d *datadriven.TestData) (string, error) {
	arg := func(n int) string {
		require.Greater(s.t, len(d.CmdArgs), n, "%s: %s needs more arguments", d.Pos, d.Cmd)
		return d.CmdArgs[n].Key
	}
	switch d.Cmd {
	case "acquire":
		ref, err := s.cache.Acquire(arg(1))
		s.refs[arg(0)] = ref
		return "ok", err
	case "get":
		o, err := s.refs[arg(0)].Get(context.Background())
		if err != nil {
			return "", brief(err)
		}
		return o.Value.Data, nil
	case "release":
		s.refs[arg(0)].Release()
	case "put":
		s.put(secret{Name: arg(0), Data: arg(1), Immutable: d.HasArg("immutable")})
	case "delete":
		s.delete(arg(0))
	case "advance":
		by, err := time.ParseDuration(arg(0))
		require.NoError(s.t, err)
		s.advance(by)
	case "down":
		s.source.FailList(1<<30, nil)
	case "up":
		s.source.FailList(0, nil)
	case "break":
		s.source.ResetWatches(nil)
	case "shut":
		return "ok", s.source.Close()
	case "close":
		return "ok", s.cache.Close()
	default:
		s.t.Errorf("%s: no command %q", d.Pos, d.Cmd)
	}
	return "ok", nil
}

// brief replaces the reason for which a deterministic host gives up waiting.
func brief(err error) error {
	return errors.New(strings.Replace(err.Error(), engine.ErrIdle.Error(), "gave up waiting", 1))
}

func (s *scenario) following() string {
	watched := s.source.watched()
	stats := s.cache.Stats()
	text := "following: " + strings.Join(watched, " ")
	if len(watched) == 0 {
		text = "following nothing"
	}
	if n := stats.Reflectors - len(watched); n > 0 {
		text += fmt.Sprintf(", trying %d", n)
	}
	if stats.Immutable > 0 {
		text += fmt.Sprintf(", immutable %d", stats.Immutable)
	}
	if stats.Idle > 0 {
		text += fmt.Sprintf(", idle %d", stats.Idle)
	}
	return text
}
