package explore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/explore/script"
)

// found are the defects that seeds have found in the engine, as shrunk scenarios. Each has
// the seed of the interleaving in which the defect was found.
var found = map[string]script.Scenario{
	"a watch that the window has overrun expires once, even if storage goes back": {
		Seed:  0x96,
		Setup: script.Setup{Batch: 5, Window: engine.Window{MinAge: time.Second, MaxEvents: 4, ChunkSize: 1}, BookmarkPeriod: time.Minute},
		Steps: append(append([]script.Step{
			{Do: script.Settle},
			{Do: script.Watch, Watch: 1, Turns: script.Unlimited, Start: &script.Start{Consumer: script.Batches, Options: engine.WatchOptions{InitialState: true, Bookmarks: true, Buffer: 1}}},
		}, writes(12)...), script.Step{Do: script.Settle}, script.Step{Do: script.Rewind, N: 5}),
	},
	"a list of the newest state is of storage that has gone back, even before the engine has noticed": {
		Seed:  170000007,
		Setup: script.Setup{Window: engine.Window{MinAge: time.Minute, MaxEvents: 1000, ChunkSize: 4}, BookmarkPeriod: time.Minute},
		Steps: append(writes(4),
			script.Step{Do: script.Settle},
			script.Step{Do: script.Rewind, N: 2, Unnoticed: true},
			script.Step{Do: script.List, N: int(script.ReadLatest), Turns: script.Unlimited},
			script.Step{Do: script.Watch, Turns: script.Unlimited, Start: &script.Start{Options: engine.WatchOptions{InitialState: true, Linearizable: true}}},
		),
	},
	"a slow watch ends even if the clock was set back": {
		Seed:  12020,
		Setup: script.Setup{Blocks: true, Batch: 2, Window: engine.Window{MinAge: time.Minute, MaxEvents: 1000, ChunkSize: 4}, Indexed: true, BookmarkPeriod: time.Minute},
		Steps: []script.Step{
			{Do: script.Write, Seed: 0x8390e9abe7732e52},
			{Do: script.Watch, Watch: 0, Turns: script.Unlimited, Start: &script.Start{Selection: 5, Consumer: script.Handler, Back: 5, Options: engine.WatchOptions{Policy: engine.Park, Buffer: 1, InitialState: true, Bookmarks: true}}},
			{Do: script.Watch, Watch: 1, Turns: script.Unlimited, Start: &script.Start{Selection: 0, Consumer: script.Batches, Back: 9, Options: engine.WatchOptions{Policy: engine.Terminate, Buffer: 3, InitialState: true, Bookmarks: true}}},
			{Do: script.Watch, Watch: 2, Turns: 2, Start: &script.Start{Selection: 6, Consumer: script.Handler, Back: 0, Options: engine.WatchOptions{Policy: engine.Conflate, Buffer: 1, Linearizable: true}}},
			{Do: script.Turns, N: 3},
			{Do: script.Write, Seed: 0xf0ba580ead58b3f3},
			{Do: script.Write, Seed: 0x442f783a660f8491},
			{Do: script.Turns, N: 1},
			{Do: script.Write, Seed: 0xae505cb870cf824f},
			{Do: script.Turns, N: 1},
			{Do: script.Write, Seed: 0x5d3a873250b8f094},
			{Do: script.Write, Seed: 0x38595e1c2ac8bbe},
			{Do: script.Turns, N: 2},
			{Do: script.Write, Seed: 0xdf7e49c42dba110d},
			{Do: script.Turns, N: 2},
			{Do: script.Write, Seed: 0x99aa8b4596509c64},
			{Do: script.Turns, N: 2},
			{Do: script.Write, Seed: 0xc7d9f42ff7699a},
			{Do: script.Turns, N: 2},
			{Do: script.Write, Seed: 0xf694c182c8de55fb},
			{Do: script.Turns, N: 2},
			{Do: script.Write, Seed: 0x98b031030aa8c6b6},
			{Do: script.Turns, N: 2},
			{Do: script.Turns, N: 1},
			{Do: script.Take, Watch: 1, N: 11},
			{Do: script.Remove, Seed: 0x351ce3fce8fc5ad5},
			{Do: script.Jump, For: -time.Second},
			{Do: script.FailLists, N: 1},
			{Do: script.Watch, Watch: 4, Turns: script.Unlimited, Start: &script.Start{Selection: 0, Consumer: script.Pull, Back: 0, Options: engine.WatchOptions{Policy: engine.Park, Buffer: 10, InitialState: true, Linearizable: true, OnPool: true}}},
		},
	},
	// This was a defect of the exploration, too, as the next one: the window may begin at the engine's own revision.
	"an engine that is to discard more history than it has when its window begins": {
		Seed: 160017963,
		Setup: script.Setup{
			SharesState: true, Window: engine.Window{MinAge: time.Minute, MaxEvents: 1000, ChunkSize: 3}, Indexed: true,
			BookmarkPeriod: time.Minute, InformerBuffer: 1000, ObjectsIdle: -1,
		},
		Steps: []script.Step{
			{Do: script.Slow, N: 4},
			{Do: script.Remove, Seed: 0xf0fa7658bfcaf55d},
			{Do: script.Turns, N: 6},
			{Do: script.Slow},
			{Do: script.Watch, Watch: 1, Turns: 2, Start: &script.Start{Selection: 8, Consumer: script.Loop, Back: 1, Options: engine.WatchOptions{Policy: engine.Conflate, Linearizable: true, Buffer: 10}}},
			{Do: script.Race, Seed: 0x9f1addc35b99e86e},
			{Do: script.Write, Seed: 0x54c062bacf42b7ee},
			{Do: script.Discard, N: 2, Turns: 4},
			{Do: script.Settle},
		},
	},
	// This was a defect of the exploration, too.
	"an engine that is to discard history before it has listed, and storage that goes back": {
		Seed: 150004440,
		Setup: script.Setup{
			Batch: 5, Window: engine.Window{MinAge: time.Second, MinEvents: 2, MaxEvents: 16, ChunkSize: 4}, Indexed: true,
			BookmarkPeriod: 2 * time.Second, VerifyEvery: time.Second, ObjectsIdle: time.Second, Uncached: true,
		},
		Steps: []script.Step{
			{Do: script.Get, N: 2, Seed: 0x25a7d5fdfa1a65fa, Meanwhile: &script.Step{Do: script.Emit, Seed: 0xfa6f1469a631ea38}},
			{Do: script.Write, Seed: 0xf105de3c8d29394d, Uncached: true},
			{Do: script.Write, Seed: 0x9a4fb47de6a4905e, Uncached: true},
			{Do: script.Remove, Seed: 0xbc529124b15c3d72},
			{Do: script.FailLists, N: 3},
			{Do: script.Discard, N: 2},
			{Do: script.Rewrite, N: 5, Seed: 0xf332770e25a1e7c},
			{Do: script.Write, Seed: 0x9683d31ba809b1e8, Uncached: true},
			{Do: script.Watch, Turns: script.Unlimited, Start: &script.Start{Consumer: script.Handler, Back: 2, Options: engine.WatchOptions{InitialState: true, Bookmarks: true, Detached: true, Buffer: 3}}},
		},
	},
	// This was a defect of the exploration, not of the engine: it read why watches had
	// ended before a timer ended one.
	"a deadline that has come when all is at rest": {
		Seed:  111661,
		Setup: script.Setup{Blocks: true, Batch: 2, Window: engine.Window{MinAge: time.Second, MaxEvents: 16, ChunkSize: 1}, BookmarkPeriod: time.Minute},
		Steps: []script.Step{
			{Do: script.Turns, N: 2},
			{Do: script.Write, Seed: 0x51049e2db1de45ab},
			{Do: script.Turns, N: 1},
			{Do: script.Turns, N: 2},
			{Do: script.Rewind, N: 5, Seed: 0xefb30b298f645e08},
			{Do: script.Write, Seed: 0xc3b69e662b05c815},
			{Do: script.Watch, Watch: 17, Turns: script.Unlimited, Start: &script.Start{Selection: 5, Consumer: script.ListingHandler, Options: engine.WatchOptions{Policy: engine.Conflate, InitialState: true, Linearizable: true, Bookmarks: true, Buffer: 10}}, After: 6, Meanwhile: &script.Step{Do: script.Rewind, N: 6, Seed: 0x5eb4d32d00b58b7e}},
			{Do: script.Slow, N: 3},
			{Do: script.Watch, Watch: 18, Turns: script.Unlimited, Start: &script.Start{Selection: 2, Consumer: script.Handler, Options: engine.WatchOptions{Policy: engine.Conflate, Bookmarks: true, Timeout: time.Second}}, After: 1, Meanwhile: &script.Step{Do: script.Rewind, Seed: 0x78631cf741471c90}},
			{Do: script.Watch, Watch: 19, Turns: script.Unlimited, Start: &script.Start{Selection: 2, Consumer: script.Pull, Back: -1, Options: engine.WatchOptions{Policy: engine.Conflate, OnPool: true, Buffer: 1}}},
		},
	},
	// This was a defect of the exploration, not of the engine: the object expires, and the engine lists it away, after
	// the watches have been drained.
	"a drain during which an object expires and the engine lists": {
		Seed:  13019821,
		Drain: true,
		Setup: script.Setup{SharesState: true, Window: engine.Window{MinAge: time.Minute, MaxEvents: 1000, ChunkSize: 1}, ObjectsIdle: time.Minute, ListWhenBehind: 5, BookmarkPeriod: time.Second},
		Steps: []script.Step{
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x34d6469a2bb1fd91},
			{Do: script.Watch, Watch: 8, Turns: script.Unlimited, Start: &script.Start{Selection: 3, Consumer: script.Channel, Back: 5, Options: engine.WatchOptions{InitialState: true, Linearizable: true, Policy: engine.Terminate}}},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0xa08616456ad42d03},
			{Do: script.Follow, Watch: 9, Turns: script.Unlimited, Seed: 0xa4ae3ea822572a33, Start: &script.Start{Selection: 3, Consumer: script.Loop, Skip: true, Options: engine.WatchOptions{Policy: engine.Conflate, OnPool: true, Buffer: 3}}},
			{Do: script.Follow, Watch: 10, Turns: script.Unlimited, Seed: 0xea3bd6883082f7a0, Start: &script.Start{Consumer: script.Channel, Options: engine.WatchOptions{Policy: engine.Conflate, InitialState: true, Linearizable: true, Bookmarks: true, Progress: true, OnPool: true, Buffer: 1}}},
			{Do: script.Slow, Watch: 2, N: 3, Turns: script.Unlimited},
			{Do: script.Watch, Watch: 11, Turns: script.Unlimited, Start: &script.Start{Consumer: script.Pull, Options: engine.WatchOptions{Policy: engine.Conflate, Linearizable: true, OnPool: true, Buffer: 1}}},
			{Do: script.Watch, Watch: 12, Turns: script.Unlimited, After: 2, Start: &script.Start{Selection: 9, Consumer: script.Processor, Skip: true, Options: engine.WatchOptions{Policy: engine.Terminate, Last: 2, Bookmarks: true, Progress: true, Detached: true, Buffer: 1}}},
			{Do: script.Watch, Watch: 13, Turns: script.Unlimited, Start: &script.Start{Selection: 9, Consumer: script.Channel, Skip: true, Options: engine.WatchOptions{Policy: engine.Conflate, Linearizable: true, OnPool: true, Buffer: 1}}},
			{Do: script.Watch, Watch: 31, Turns: script.Unlimited, After: 1, Start: &script.Start{Selection: 3, Consumer: script.Pull, Skip: true, Back: 5, Options: engine.WatchOptions{Policy: engine.Terminate, Linearizable: true, OnPool: true, Buffer: 10}}, Meanwhile: &script.Step{Do: script.Lease, Turns: script.Unlimited, For: 100 * time.Millisecond, Seed: 0x7a578c203ea233f7}},
			{Do: script.Take, Watch: 31, N: 100},
			{Do: script.Expire},
			{Do: script.Discard, N: 4, Turns: script.Unlimited},
		},
	},
	"a wait that comes before the timer of another leaves none behind when the clock was set back": {
		Seed:  200,
		Setup: script.Setup{Blocks: true, Batch: 2, Window: engine.Window{MinAge: time.Second, MaxEvents: 4, ChunkSize: 3}, Indexed: true, BookmarkPeriod: time.Second},
		Steps: []script.Step{
			{Do: script.Slow, N: 4},
			{Do: script.Watch, Watch: 6, Turns: script.Unlimited, Start: &script.Start{Selection: 7, Consumer: script.Batches, Back: 2, Options: engine.WatchOptions{Policy: engine.Conflate, InitialState: true, Linearizable: true, OnPool: true}}, After: 5, Meanwhile: &script.Step{Do: script.Hangup}},
			{Do: script.Write, Seed: 1},
			{Do: script.Watch, Watch: 7, Turns: script.Unlimited, Start: &script.Start{Selection: 2, Consumer: script.Pull, Options: engine.WatchOptions{Policy: engine.Conflate, InitialState: true, Linearizable: true, OnPool: true}}},
			{Do: script.Jump, For: -time.Second},
			{Do: script.FailWatches, N: 7},
			{Do: script.Watch, Watch: 8, Turns: script.Unlimited, Start: &script.Start{Selection: 3, Consumer: script.Handler, Back: -1, Options: engine.WatchOptions{Policy: engine.Terminate, Linearizable: true, Buffer: 3}}, After: 1, Meanwhile: &script.Step{Do: script.Pass, N: 3, For: time.Second}},
			{Do: script.Jump, For: -time.Hour},
			{Do: script.Watch, Watch: 11, Turns: script.Unlimited, Start: &script.Start{Selection: 4, Consumer: script.Batches, Back: 30, Options: engine.WatchOptions{Policy: engine.Conflate, Linearizable: true}}, After: 3, Meanwhile: &script.Step{Do: script.Pass, N: 1, For: time.Second}},
		},
	},
	"an informer does not go back to the past of storage that has another by now": {
		Seed:  0x49704d1,
		Setup: script.Setup{Blocks: true, SharesState: true, Window: engine.Window{MinAge: time.Second, MaxEvents: 1000, ChunkSize: 4}, Indexed: true, InformerBuffer: 1000, InformerPolicy: informer.Resnapshot, VerifyEvery: 10 * time.Second, BookmarkPeriod: 2 * time.Second},
		Steps: []script.Step{
			{Do: script.Watch, Watch: 3, Turns: script.Unlimited, Start: &script.Start{Selection: 8, Consumer: script.Handler, Options: engine.WatchOptions{Policy: engine.Conflate, OnPool: true}}, After: 6, Meanwhile: &script.Step{Do: script.Expire}},
			{Do: script.Watch, Watch: 21, Turns: 2, Start: &script.Start{Selection: 5, Consumer: script.Pull, Back: 1, Options: engine.WatchOptions{Policy: engine.Park, InitialState: true, Bookmarks: true, OnPool: true, Buffer: 1}}},
			{Do: script.Slow, N: 5},
			{Do: script.Watch, Watch: 22, Turns: 3, Start: &script.Start{Selection: 5, Consumer: script.Handler, Back: -1, Options: engine.WatchOptions{Policy: engine.Park, Linearizable: true, Bookmarks: true, OnPool: true, Buffer: 3, Timeout: 10 * time.Second}}},
			{Do: script.Watch, Watch: 23, Turns: script.Unlimited, Start: &script.Start{Selection: 3, Consumer: script.Channel, Options: engine.WatchOptions{Policy: engine.Park, InitialState: true, Bookmarks: true, Buffer: 1}}, Meanwhile: &script.Step{Do: script.Rewind, N: 4, Seed: 0x1007eed272c4b720}},
			{Do: script.Write, Seed: 0xd6e58a6e565b3ddc},
			{Do: script.Watch, Watch: 24, Turns: script.Unlimited, Start: &script.Start{Selection: 4, Consumer: script.Handler, Options: engine.WatchOptions{Policy: engine.Conflate, Bookmarks: true, Timeout: time.Second}}, After: 2, Meanwhile: &script.Step{Do: script.Write, Seed: 0xb426c7d4c39096ea}},
			{Do: script.Block},
			{Do: script.Pass, N: 3, For: time.Second},
			{Do: script.Watch, Watch: 25, Turns: script.Unlimited, Start: &script.Start{Selection: 3, Consumer: script.Batches, Options: engine.WatchOptions{Policy: engine.Conflate, Buffer: 1}}, After: 1, Meanwhile: &script.Step{Do: script.Rewrite, N: 6, Seed: 0x7798d2f84cb8de5}},
		},
	},
	// This was a defect of the exploration, too: its storage showed the second watch a part
	// of the transaction.
	"a resume from a future revision that has come to be inside a transaction": {
		Seed:  1945,
		Setup: script.Setup{Blocks: true, Batch: 5, Transactions: true, Uncached: true, Window: engine.Window{MinAge: time.Second, MaxEvents: 1000, ChunkSize: 4}, Indexed: true, BookmarkPeriod: time.Minute},
		Steps: []script.Step{
			{Do: script.Watch, Watch: 2, Turns: script.Unlimited, Start: &script.Start{Selection: 4, Consumer: script.Pull, Uncached: true, Back: -2}, After: 5, Meanwhile: &script.Step{Do: script.Transact, N: 4, Seed: 0xe4da93d660f0eef1}},
			{Do: script.Resume, Watch: 2, Other: 34, Turns: script.Unlimited},
		},
	},
	// This was a defect of the exploration, too: it took the informer, whose watch had expired
	// before, for one that a drain serves.
	"a drain when an informer has yet to learn that its watch has expired": {
		Seed: 746216545505,
		Setup: script.Setup{
			Blocks: true, Batch: 1, SharesState: true, ListWhenBehind: 1, InformerBuffer: 1, VerifyEvery: 10 * time.Second, BookmarkPeriod: time.Second,
			Window: engine.Window{MinAge: time.Second, MinEvents: 2, MaxEvents: 4, ChunkSize: 4},
		},
		Drain: true,
		Steps: []script.Step{
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x3f63a5b0b33e3377},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0xc62af9e4b8fb4d9f},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x40bd8754623eb2cb},
			{Do: script.NextPage, N: 1, Turns: script.Unlimited, Seed: 0x19160393004d4b8c},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x8e554822916a770e},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x4e29c62270f62ab9},
			{Do: script.Settle},
			{Do: script.Get, N: 1, Turns: script.Unlimited, Seed: 0x537ae5c974363fe0, For: 10 * time.Second, After: 7, Meanwhile: &script.Step{Do: script.Hangup}},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x9a6f11155ddd614c},
			{Do: script.Remove, Turns: script.Unlimited, Seed: 0xe6bb7fd66d5d55df},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x5d1fe51158d9e688},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x999550d4bf304c2c},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x7fdc84acadb0cb0f},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0x3c5fb1615a32ecf3},
			{Do: script.Remove, Turns: script.Unlimited, Seed: 0xa379b2f8b4d88391},
			{Do: script.List, N: 2, Turns: script.Unlimited, Seed: 0x6e409caf4c465c8c, For: 10 * time.Second},
			{Do: script.Watch, Watch: 7, Turns: script.Unlimited, Start: &script.Start{Selection: 3, Consumer: script.Loop, Skip: true, Options: engine.WatchOptions{Policy: engine.Terminate, InitialState: true, Bookmarks: true, Progress: true, Buffer: 3}}},
			{Do: script.Write, Turns: script.Unlimited, Seed: 0xd779c993f08f3b18},
		},
	},
	// This was a defect of the exploration, too: after a compaction that failed it had forgotten one
	// that the cache had yet to make.
	"a compaction that fails after one that the cache is behind": {
		Seed: 946913031658,
		Setup: script.Setup{
			NoPrev: true, Indexed: true, InformerBuffer: 1, Uncached: true, ListWhenBehind: 5, BookmarkPeriod: 2 * time.Second,
			Window: engine.Window{MinAge: time.Minute, MaxEvents: 16, MaxBytes: 4096, ChunkSize: 1},
		},
		Drain: true,
		Steps: []script.Step{
			{Do: script.Watch, Turns: script.Unlimited, Start: &script.Start{Consumer: script.Channel, Back: 3, Options: engine.WatchOptions{InitialState: true, Linearizable: true, Bookmarks: true, Buffer: 10}}},
			{Do: script.Write, Uncached: true, Turns: script.Unlimited, Seed: 0x85d6a33b315e32a3},
			{Do: script.Watch, Watch: 3, Turns: script.Unlimited, Start: &script.Start{Selection: 1, Consumer: script.Processor, Back: 3, Options: engine.WatchOptions{InitialState: true, Bookmarks: true, Buffer: 10}}, After: 5, Meanwhile: &script.Step{Do: script.Hangup}},
			{Do: script.Discard, Turns: script.Unlimited},
			{Do: script.FailCalls, N: 2},
			{Do: script.Discard, N: 7, Turns: 4},
			{Do: script.Pass, N: 5, For: 100 * time.Millisecond},
		},
	},
}

// interleavings is in how many interleavings each scenario is played. A defect needs its
// steps in a certain order of turns, and that order changes whenever the engine takes one
// turn more or fewer. So the old seed may no longer lead to the defect; one of many other
// seeds is likely to, but not certain.
const interleavings = 100

func TestPlay_ScenariosThatFoundADefectHold(t *testing.T) {
	cfg := Things()
	for name, s := range found {
		t.Run(name, func(t *testing.T) {
			for n := range uint64(interleavings) {
				played := s
				played.Seed += n
				f, err := Play(cfg, played)
				require.NoError(t, err)
				require.Nil(t, f)
			}
		})
	}
}

// writes returns n writes with a few turns between.
func writes(n uint64) (steps []script.Step) {
	for i := range n {
		steps = append(steps, script.Step{Do: script.Write, Seed: i}, script.Step{Do: script.Turns, N: 5})
	}
	return steps
}
