// Package codec turns values into bytes and back, for storage that outlives the
// process.
//
//	         Codec.Encode              Sealer.Seal
//	*T ──▶ JSON ──▶ Gzip(JSON) ──▶ AESGCM, bound to AAD(type, key) ──▶ storage
//	*T ◀── JSON ◀── Gzip(JSON) ◀── AESGCM, says if the key is old  ◀── storage
//	         Codec.Decode              Sealer.Open
//
// A [Codec] gives each encoding a tag, one byte that storage keeps beside the
// bytes and hands back to Decode. A new codec decodes the tags of the old one, so that
// old records stay readable.
//
// A [Sealer] encrypts what a codec made. Only values are sealed: keys stay
// readable, because storage needs their order. Values that storage had before it was given
// a Sealer stay as they are until they are written again, and may be left in its unused space.
//
// Everything here is pure and safe for concurrent use, and bounds the memory
// that damaged or hostile bytes can make it allocate.
package codec
