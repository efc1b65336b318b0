package dispatcher

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/watcher"
)

// TestStalled_Scenarios runs testdata/stalled. Its commands are:
//
//	stall <name> [taken=<events>] [policy=…]
//	draw                                     the budget is drawn for the stalled watches
//	give <name> events=<n>                   its consumer is given events
//	recover <name>
//	overdue policy=…                         prints the watches that have read nothing since the draw
//	all                                      prints how many there are
func TestStalled_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/stalled", func(t *testing.T, path string) {
		s, taken, mark := newStalled[string](), map[string]uint64{}, uint64(0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "stall":
				name := d.CmdArgs[0].Key
				taken[name] = numberArg(t, d, "taken")
				s.add(name, taken[name], policyArg(t, d))
			case "draw":
				mark = s.mark()
			case "give":
				taken[d.CmdArgs[0].Key] += numberArg(t, d, "events")
			case "recover":
				s.remove(d.CmdArgs[0].Key)
			case "overdue":
				late := s.overdue(policyArg(t, d), mark, func(name string) uint64 { return taken[name] })
				if len(late) == 0 {
					return "none\n"
				}
				return strings.Join(late, " ") + "\n"
			case "all":
				return fmt.Sprintf("%d stalled, %d of them under terminate\n", s.len(), s.count(watcher.Terminate))
			default:
				t.Fatalf("unknown command %q", d.Cmd)
			}
			return ""
		})
	})
}

// numberArg reads a number, zero if the argument is not there.
func numberArg(t *testing.T, d *datadriven.TestData, name string) (n uint64) {
	d.MaybeScanArgs(t, name, &n)
	return n
}

func policyArg(t *testing.T, d *datadriven.TestData) watcher.Policy {
	var name string
	if !d.MaybeScanArgs(t, "policy", &name) {
		return watcher.Park
	}
	p, err := watcher.ParsePolicy(name)
	require.NoError(t, err)
	return p
}

// stuck is the model's entry: the set is a list that is searched.
type stuck struct {
	name, seen uint64
	policy     watcher.Policy
	order      uint64
}

func TestStalled_AgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, taken := newStalled[uint64](), map[uint64]uint64{}
		var stalls, mark, marked uint64
		var list []stuck // in order of stalling
		name := rapid.Uint64Range(0, 5)
		policy := rapid.SampledFrom([]watcher.Policy{watcher.Park, watcher.Terminate, watcher.Conflate})
		without := func(name uint64) []stuck {
			return slices.DeleteFunc(list, func(m stuck) bool { return m.name == name })
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				stalls++
				m := stuck{name: name.Draw(t, "name"), policy: policy.Draw(t, "policy"), order: stalls}
				m.seen = taken[m.name]
				list = append(without(m.name), m)
				s.add(m.name, m.seen, m.policy)
			},
			"draw": func(*rapid.T) { mark, marked = s.mark(), stalls },
			"give": func(t *rapid.T) { taken[name.Draw(t, "name")]++ },
			"remove": func(t *rapid.T) {
				n, before := name.Draw(t, "name"), len(list)
				list = without(n)
				require.Equal(t, len(list) < before, s.remove(n))
			},
			"overdue": func(t *rapid.T) {
				of := policy.Draw(t, "policy")
				var want []uint64
				for i, m := range list {
					if m.policy != of || m.order > marked {
						continue
					}
					if m.seen == taken[m.name] {
						want = append(want, m.name)
					}
					list[i].seen = taken[m.name]
				}
				require.Equal(t, want, s.overdue(of, mark, func(name uint64) uint64 { return taken[name] }))
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(list), s.len())
				of := policy.Draw(t, "policy")
				require.Equal(t, s.count(of), len(slices.DeleteFunc(slices.Clone(list), func(m stuck) bool { return m.policy != of })))
			},
		})
	})
}
