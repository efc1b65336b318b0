package pages_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

const pageSize = 4096

// written returns the path of a file after some commits: two buckets, one of
// them inside its parent's page, values of several pages, and free pages.
func written(t testing.TB, commits int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize, FreelistType: bbolt.FreelistMapType})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for commit := range commits {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return commitOne(tx, commit, random) }))
	}
	require.NoError(t, db.Close())
	return path
}

func commitOne(tx *bbolt.Tx, commit int, random *rand.Rand) error {
	small, err := tx.CreateBucketIfNotExists([]byte("small"))
	if err != nil {
		return err
	}
	if err := small.Put([]byte("commit"), fmt.Append(nil, commit)); err != nil {
		return err
	}
	log, err := tx.CreateBucketIfNotExists([]byte("log"))
	if err != nil {
		return err
	}
	for range 40 {
		seq, _ := log.NextSequence()
		size := random.IntN(200)
		if random.IntN(50) == 0 {
			size = random.IntN(5 * pageSize)
		}
		if err := log.Put(binary.BigEndian.AppendUint64(nil, seq), bytes.Repeat([]byte{byte(seq)}, size)); err != nil {
			return err
		}
		if random.IntN(3) == 0 {
			if err := log.Delete(binary.BigEndian.AppendUint64(nil, uint64(random.IntN(int(seq))))); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk returns all items and problems of a file's bytes.
func walk(t testing.TB, image []byte) (items []string, problems []pages.Problem) {
	t.Helper()
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	var p pages.Problem
	if err != nil {
		require.ErrorAs(t, err, &p)
		return nil, []pages.Problem{p}
	}
	err = pages.Walk(bytes.NewReader(image), metas.Newest, func(it pages.Item) error {
		if it.Key == nil {
			return nil // a bucket
		}
		items = append(items, describe(it.Bucket, it.Sequence, it.Key, it.Value))
		return nil
	}, func(p pages.Problem) { problems = append(problems, p) })
	require.NoError(t, err)
	return items, problems
}

func describe(bucket string, sequence uint64, key, value []byte) string {
	return fmt.Sprintf("%s %d %x %x", bucket, sequence, key, crc32.ChecksumIEEE(value))
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	return image
}

// itemsOf returns what bbolt finds in a file, as walk does.
func itemsOf(t testing.TB, path string) (items []string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				items = append(items, describe(string(name), b.Sequence(), k, v))
				return nil
			})
		})
	}))
	return items
}
