package inflight_test

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/internal/inflight"
)

// inBubble runs a test by the virtual clock.
func inBubble(t *testing.T, limits inflight.Limits, test func(t *testing.T, l *inflight.Limiter)) {
	synctest.Test(t, func(t *testing.T) { test(t, inflight.NewLimiter(limits)) })
}

// send has the answers of reads begin, one after the other.
func send(all ...*request) {
	for _, r := range all {
		r.began = time.Now()
		time.Sleep(time.Millisecond)
	}
}

// arrive has the bodies of writes arrive, one after the other.
func arrive(t *testing.T, l *inflight.Limiter, all ...*request) {
	t.Helper()
	for _, r := range all {
		require.NoError(t, l.Arrive(r))
		time.Sleep(time.Millisecond)
	}
}

// Of the answers that have been sent for a second, the one that has been sent longest of the user with the
// most reads makes room.
func TestReads_ThatAreSentSlowlyMakeRoom(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Read, "b", "a", "a")
		send(all...)
		require.Equal(t, inflight.FullError{Of: inflight.Read}, l.Enter(&request{user: "c"}, inflight.Read), "it is too early")
		time.Sleep(time.Second)
		all = append(all, entered(t, l, inflight.Read, "c")...)
		require.Equal(t, inflight.Counts{Reads: 3, Departures: 1}, l.Counts())
		l.Leave(all[1])
		require.Equal(t, inflight.Counts{Reads: 3}, l.Counts())
		require.False(t, all[1].cutOff)
		leave(t, l, all...)
	})
}

// A user that has as many reads as it may have gets no place of another user's.
func TestReads_OfOneUserMakeRoomForItsOwn(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Read, "b", "a", "a")
		send(all[0])
		time.Sleep(time.Second)
		require.Equal(t, inflight.FullError{Of: inflight.Read, PerUser: true}, l.Enter(&request{user: "a"}, inflight.Read))
		l.Leave(all[0])
		send(all[1])
		time.Sleep(time.Second)
		all = append(all, entered(t, l, inflight.Read, "a")...)
		require.Equal(t, inflight.Counts{Reads: 2, Departures: 1}, l.Counts(), "also where there is room for others")
		leave(t, l, all...)
	})
}

// There are as many answers that have made room as reads. The one that has done so longest is cut off for the next.
func TestReads_ThatHaveMadeRoomAreCutOffWhenTheyAreMany(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		inBubble(t, inflight.Limits{Reads: 1, ReadsPerUser: 1}, func(t *testing.T, l *inflight.Limiter) {
			var all []*request
			for _, user := range []string{"a", "b"} {
				one := entered(t, l, inflight.Read, user)
				send(one...)
				time.Sleep(time.Second)
				all = append(all, one...)
			}
			require.Equal(t, inflight.Counts{Reads: 1, Departures: 1}, l.Counts())
			all[0].stubborn = stubborn
			next := &request{user: "c"}
			err := l.Enter(next, inflight.Read)
			require.Equal(t, !stubborn, all[0].cutOff)
			if stubborn {
				require.Equal(t, inflight.FullError{Of: inflight.Read}, err)
			} else {
				require.NoError(t, err)
				require.Equal(t, inflight.Counts{Reads: 1, Departures: 2}, l.Counts(), "it is there until it leaves")
			}
			leave(t, l, append(all, next)...)
		})
	}
}

// A body that arrives keeps no other write out. Once it is there, its write is one like any other.
func TestWrites_HaveNoPlaceWhileTheirBodiesArrive(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Write, "a", "a", "b")
		arrive(t, l, all...)
		require.Equal(t, inflight.Counts{Arrivals: 3}, l.Counts())
		quick := entered(t, l, inflight.Write, "a", "b")
		require.NoError(t, l.Arrived(all[0], nil))
		require.Equal(t, inflight.Counts{Writes: 3, Arrivals: 2}, l.Counts())
		require.Equal(t, inflight.FullError{Of: inflight.Write}, l.Arrived(all[1], nil))
		require.Equal(t, io.ErrUnexpectedEOF, l.Arrived(all[2], io.ErrUnexpectedEOF))
		leave(t, l, append(all, quick...)...)
	})
}

// As many bodies arrive at a time as there may be writes. One of the user that has most is given up at once.
func TestBodies_OfTheUserWithTheMostGiveWay(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Write, "b", "a", "a")
		arrive(t, l, all...)
		next := entered(t, l, inflight.Write, "c")
		arrive(t, l, next...)
		require.True(t, all[1].bodyLeft)
		require.False(t, all[0].bodyLeft || all[2].bodyLeft)
		require.Equal(t, inflight.Counts{Arrivals: 4}, l.Counts(), "it is there until it leaves")
		require.Equal(t, inflight.ErrGivenUp, l.Arrived(all[1], io.ErrUnexpectedEOF))
		leave(t, l, append(all, next...)...)
	})
}

// Among users that have as many the one that sends another body gives one up, after a second. Under load each body
// would otherwise give way shortly before its end.
func TestBodies_GiveWayToThoseOfTheirOwnUserAfterASecond(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Write, "a", "b", "c")
		arrive(t, l, all...)
		next := entered(t, l, inflight.Write, "b")
		require.Equal(t, inflight.ErrBodies, l.Arrive(next[0]))
		require.Equal(t, inflight.Counts{Writes: 1, Arrivals: 3}, l.Counts(), "it keeps its place")
		time.Sleep(time.Second)
		all[1].stubborn = true
		require.Equal(t, inflight.ErrBodies, l.Arrive(next[0]))
		all[1].stubborn = false
		require.NoError(t, l.Arrive(next[0]))
		require.True(t, all[1].bodyLeft)
		require.False(t, all[0].bodyLeft || all[2].bodyLeft)
		leave(t, l, append(all, next...)...)
	})
}

// A write that has failed before it was counted, or once its body was read, has nothing to give up.
func TestArrive_IsOfWritesThatHaveAPlace(t *testing.T) {
	l := inflight.NewLimiter(limits)
	require.NoError(t, l.Arrive(&request{}))
	read := entered(t, l, inflight.Read, "a")
	require.NoError(t, l.Arrive(read[0]))
	require.Equal(t, inflight.Counts{Reads: 1}, l.Counts())
	leave(t, l, read...)
}

// A write whose answer is sent keeps no other write out, and a read keeps its place.
func TestDepart_IsOfWrites(t *testing.T) {
	l := inflight.NewLimiter(limits)
	writes, reads := entered(t, l, inflight.Write, "a", "a"), entered(t, l, inflight.Read, "a")
	for _, r := range append(writes, reads...) {
		l.Depart(r)
		l.DepartUnadmitted(r)
	}
	require.Equal(t, inflight.Counts{Reads: 1, Departures: 2}, l.Counts())
	more := entered(t, l, inflight.Write, "a", "a")
	l.Depart(&request{user: "a"})
	require.Equal(t, inflight.Counts{Reads: 1, Writes: 2, Departures: 2}, l.Counts())
	leave(t, l, slices.Concat(writes, reads, more)...)
}

// As many answers depart as there may be reads. A write that finds none that gives way keeps its place.
func TestDepart_OfOneTooMany(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Write, "a", "a")
		all = append(all, entered(t, l, inflight.Write, "b")...)
		for _, r := range all {
			l.Depart(r)
		}
		more := entered(t, l, inflight.Write, "a")
		l.Depart(more[0])
		require.Equal(t, inflight.Counts{Writes: 1, Departures: 3}, l.Counts())
		time.Sleep(time.Second)
		l.Depart(more[0])
		require.Equal(t, inflight.Counts{Departures: 4}, l.Counts(), "it is there until it leaves")
		require.Equal(t, []bool{true, false, false}, []bool{all[0].cutOff, all[1].cutOff, all[2].cutOff})
		leave(t, l, append(all, more...)...)
	})
}

// Of the answers to requests that were not admitted the oldest gives way at once, and those of users with fewer stay.
func TestDepartUnadmitted_TheOldestGivesWayAtOnce(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := unadmitted(l, "b", "a", "a", "a", "a", "a")
		require.Equal(t, []bool{false, true, true, true, false, false}, cutOff(all))
		require.Equal(t, inflight.Counts{Departures: 6}, l.Counts(), "they are there until they leave")
		leave(t, l, all...)
	})
}

// A refusal cuts no answer to a write off, however many refusals there are: the client would not know whether the
// write was done.
func TestDepartUnadmitted_LeavesAnswersToWritesAlone(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		writes := entered(t, l, inflight.Write, "a", "a", "b")
		for _, w := range writes {
			l.Depart(w)
		}
		time.Sleep(time.Minute)
		refused := unadmitted(l, "a", "a", "a", "a", "b")
		require.Equal(t, []bool{false, false, false}, cutOff(writes))
		require.Equal(t, []bool{true, true, false, false, false}, cutOff(refused))
		leave(t, l, append(writes, refused...)...)
	})
}

// A write that has found no place among the departures keeps its own only until another write wants it, and an answer
// there has had its second. One of a user that has as many as it may have wants one of its own.
func TestDepart_OfWritesThatHaveKeptTheirPlaces(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Write, "a", "a", "b")
		for _, r := range all {
			l.Depart(r)
		}
		kept := entered(t, l, inflight.Write, "b", "a", "a")
		for _, r := range kept {
			l.Depart(r)
		}
		require.Equal(t, inflight.Counts{Writes: 3, Departures: 3}, l.Counts())
		require.Equal(t, inflight.FullError{Of: inflight.Write}, l.Enter(&request{user: "c"}, inflight.Write))
		time.Sleep(time.Second)
		all = append(all, entered(t, l, inflight.Write, "c")...) // for which the first of b departs
		require.Equal(t, inflight.Counts{Writes: 3, Departures: 4}, l.Counts())
		l.Leave(all[3])
		all = append(all, entered(t, l, inflight.Write, "a")...) // for which the first of a departs
		require.Equal(t, inflight.Counts{Writes: 2, Departures: 5}, l.Counts())
		require.Equal(t, []bool{true, false, true, false, false}, cutOff(all), "each of the user with the most")
		require.Equal(t, []bool{false, false, false}, cutOff(kept))
		l.Leave(kept[2])
		require.Equal(t, inflight.Counts{Writes: 1, Departures: 5}, l.Counts())
		leave(t, l, append(all, kept...)...)
	})
}

// An answer to a write gives way to none for a second. Meanwhile other writes keep their places, and reads find other
// answers that give way.
func TestDepart_AnswersToWritesHaveASecond(t *testing.T) {
	inBubble(t, limits, func(t *testing.T, l *inflight.Limiter) {
		all := entered(t, l, inflight.Write, "a", "a")
		reads := entered(t, l, inflight.Read, "c", "d", "e")
		send(reads[0])
		time.Sleep(time.Second)
		all = append(all, entered(t, l, inflight.Read, "f")...) // for which that of c departs
		time.Sleep(time.Second)
		for _, r := range all[:2] {
			l.Depart(r)
		}
		other := entered(t, l, inflight.Write, "b")
		l.Depart(other[0])
		require.Equal(t, inflight.Counts{Reads: 3, Departures: 4}, l.Counts())
		require.Equal(t, []bool{false, false, false}, cutOff(all))
		require.True(t, reads[0].cutOff, "it has had its second")
		another := entered(t, l, inflight.Write, "g")
		l.Depart(another[0])
		require.Equal(t, inflight.Counts{Reads: 3, Writes: 1, Departures: 4}, l.Counts())
		time.Sleep(time.Second)
		l.Depart(another[0])
		require.Equal(t, []bool{true, false, false}, cutOff(all))
		leave(t, l, slices.Concat(all, reads, other, another)...)
	})
}

// Where the user with the most answers has only such, the one that gives way is the oldest of the user with the next most.
func TestDepart_OfAUserWithFewerForAnswersToWrites(t *testing.T) {
	inBubble(t, inflight.Limits{Reads: 5, ReadsPerUser: 5, Writes: 9, WritesPerUser: 9}, func(t *testing.T, l *inflight.Limiter) {
		old := entered(t, l, inflight.Write, "a", "b", "b")
		for _, w := range old {
			l.Depart(w)
		}
		time.Sleep(time.Second)
		l.Leave(old[0])
		all := entered(t, l, inflight.Write, "c", "c", "c", "b")
		for _, w := range all {
			l.Depart(w)
		}
		require.Equal(t, []bool{false, true, false}, cutOff(old))
		require.Equal(t, []bool{false, false, false, false}, cutOff(all))
		leave(t, l, append(old, all...)...)
	})
}

// A user whose answers are all to writes that have just been done does not cut off those of another one that has fewer.
func TestDepart_OfTheUserWithTheMostLeavesThoseOfOthersAlone(t *testing.T) {
	inBubble(t, inflight.Limits{Reads: 3, ReadsPerUser: 3, Writes: 9, WritesPerUser: 9}, func(t *testing.T, l *inflight.Limiter) {
		other := entered(t, l, inflight.Write, "b")
		l.Depart(other[0])
		time.Sleep(time.Second)
		many := entered(t, l, inflight.Write, "a", "a", "a")
		for _, w := range many {
			l.Depart(w)
		}
		require.Equal(t, inflight.Counts{Writes: 1, Departures: 3}, l.Counts(), "the third keeps its place")
		require.False(t, other[0].cutOff)
		leave(t, l, append(other, many...)...)
	})
}

// unadmitted has answers to requests of users be sent that were not admitted.
func unadmitted(l *inflight.Limiter, users ...string) (all []*request) {
	for _, user := range users {
		r := &request{user: user}
		l.DepartUnadmitted(r)
		all = append(all, r)
	}
	return all
}

// cutOff returns which answers were cut off.
func cutOff(all []*request) (which []bool) {
	for _, r := range all {
		which = append(which, r.cutOff)
	}
	return which
}
