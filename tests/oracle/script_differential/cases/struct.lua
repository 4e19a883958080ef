return struct.pack('b',5)
----
return struct.pack('b',-1)
----
return struct.pack('B',255)
----
return struct.pack('B',256)
----
return struct.pack('h',-2)
----
return struct.pack('H',65535)
----
return struct.pack('>H',258)
----
return struct.pack('<H',258)
----
return struct.pack('l',-1)
----
return struct.pack('L',2^53)
----
return struct.pack('>L',2^53)
----
return struct.pack('L',2^63)
----
return struct.pack('L',2^64)
----
return struct.pack('L',1e300)
----
return struct.pack('L',-1e300)
----
return struct.pack('L',0/0)
----
return struct.pack('L',1/0)
----
return struct.pack('L',-2^63)
----
return struct.pack('L',3.9)
----
return struct.pack('L',-3.9)
----
return struct.pack('T',1)
----
return struct.pack('i',-5)
----
return struct.pack('I',5)
----
return struct.pack('i1',5)
----
return struct.pack('i3',-5)
----
return struct.pack('>i3',-5)
----
return struct.pack('i8',-5)
----
return struct.pack('i16',-5)
----
return struct.pack('>i16',5)
----
return struct.pack('i32',-5)
----
return struct.pack('i33',5)
----
return struct.pack('i0',5)
----
return struct.pack('i99999999999',5)
----
return struct.pack('I2I3',1,2)
----
return struct.pack('f',1.5)
----
return struct.pack('>f',1.5)
----
return struct.pack('f',1e300)
----
return struct.pack('d',1.5)
----
return struct.pack('>d',0.1)
----
return struct.pack('x')
----
return struct.pack('xxBx',1)
----
return struct.pack('s','abc')
----
return struct.pack('ss','abc','')
----
return struct.pack('s','a\0b')
----
return struct.pack('c0','abc')
----
return struct.pack('c2','abc')
----
return struct.pack('c','abc')
----
return struct.pack('c5','abc')
----
return struct.pack('c0',12)
----
return struct.pack('Bc0',3,'abc')
----
return struct.pack('Lc0Lc0',3,'abc',2,'de')
----
return struct.pack('dLc0',1.5,3,'abc')
----
return struct.pack('Bc0I',3,'abc','17')
----
return struct.pack('!4BI',1,2)
----
return struct.pack('!8Bd',1,2)
----
return struct.pack('!Bd',1,2)
----
return struct.pack('!2BI',1,2)
----
return struct.pack('!1BI',1,2)
----
return struct.pack('BI',1,2)
----
return struct.pack('!4Bi3',1,2)
----
return struct.pack('!8Bi3B',1,2,3)
----
return struct.pack('!8Bi5B',1,2,3)
----
return struct.pack('!8Bc3B',1,'abc',3)
----
return struct.pack('!8BsI',1,'abc',3)
----
return struct.pack('!3B',1)
----
return struct.pack('!0B',1)
----
return struct.pack('!16Bd',1,2)
----
return struct.pack('> B < H',1,2)
----
return struct.pack('z',1)
----
return struct.pack('%',1)
----
return struct.pack('=B',1)
----
return struct.pack('\1',1)
----
return struct.pack('\255',1)
----
return struct.pack('')
----
return struct.pack()
----
return struct.pack('B')
----
return struct.pack('B','x')
----
return struct.pack('B',nil)
----
return struct.pack('s',nil)
----
return struct.pack('s',{})
----
return struct.pack('B',{})
----
return struct.pack('B\0B',1,2)
----
return struct.pack(5)
----
return struct.pack({})
----
return struct.pack('B',1,2,3)
----
return struct.pack('HHL','1','2','3')
----
return {struct.unpack('b','\255')}
----
return {struct.unpack('B','\255')}
----
return {struct.unpack('h','\255\255')}
----
return {struct.unpack('H','\255\255')}
----
return {struct.unpack('>H','\1\2')}
----
return {struct.unpack('<H','\1\2')}
----
return {struct.unpack('i3','\255\255\255')}
----
return {struct.unpack('I3','\255\255\255')}
----
return {struct.unpack('>i3','\255\255\254')}
----
return {struct.unpack('i',('\255'):rep(4))}
----
return {tostring(struct.unpack('L',('\255'):rep(8)))}
----
return {tostring(struct.unpack('l',('\255'):rep(8)))}
----
return {tostring(struct.unpack('i16','\1'..('\0'):rep(15)))}
----
return {tostring(struct.unpack('i16',('\255'):rep(16)))}
----
return {tostring(struct.unpack('I16',('\255'):rep(16)))}
----
return {tostring(struct.unpack('>i16',('\0'):rep(15)..'\7'))}
----
return {struct.unpack('i0','abc')}
----
return {tostring(struct.unpack('f','\0\0\192\63'))}
----
return {tostring(struct.unpack('>f','\63\192\0\0'))}
----
return {tostring(struct.unpack('d',struct.pack('d',0.1)))}
----
return {struct.unpack('s','abc\0def')}
----
return {struct.unpack('ss','abc\0def\0')}
----
return {struct.unpack('s','abc')}
----
return {struct.unpack('s','')}
----
return {struct.unpack('c2','abc')}
----
return {struct.unpack('c','abc')}
----
return {struct.unpack('c5','abc')}
----
return {struct.unpack('c0','abc')}
----
return {struct.unpack('Bc0','\3abc')}
----
return {struct.unpack('Bc0','\4abc')}
----
return {struct.unpack('sc0','2\0abc')}
----
return {struct.unpack('bc0','\255abc')}
----
return {struct.unpack('dc0',struct.pack('d',1.9)..'abc')}
----
return {struct.unpack('xB','ab')}
----
return {struct.unpack('x','')}
----
return {struct.unpack('BBB','ab')}
----
return {struct.unpack('B','abc',2)}
----
return {struct.unpack('B','abc',3)}
----
return {struct.unpack('B','abc',4)}
----
return {struct.unpack('B','abc',0)}
----
return {struct.unpack('B','abc',-1)}
----
return {struct.unpack('B','abc','x')}
----
return {struct.unpack('','abc')}
----
return {struct.unpack('','abc',10)}
----
return {struct.unpack('!4BI','a\0\0\0\1\0\0\0')}
----
return {struct.unpack('!8Bi3','a\0\0\0\1\0\0\0')}
----
return {struct.unpack('>BH<H','a\1\2\1\2')}
----
return {struct.unpack('Lc0Lc0',struct.pack('Lc0Lc0',3,'abc',2,'de'))}
----
return {struct.unpack('dLc0',struct.pack('dLc0',7,3,'abc'))}
----
return {struct.unpack('z','abc')}
----
return {struct.unpack('B')}
----
return {struct.unpack()}
----
return {struct.unpack('B',{})}
----
return {struct.unpack('B',nil)}
----
return {struct.unpack('!3B','a')}
----
return select('#',struct.unpack(('B'):rep(7900),('a'):rep(7900)))
----
return select('#',struct.unpack(('B'):rep(8100),('a'):rep(8100)))
----
return struct.size('B')
----
return struct.size('bBhHlLTiIfdx')
----
return struct.size('!8BdBI')
----
return struct.size('i16c5')
----
return struct.size('c')
----
return struct.size('c0')
----
return struct.size('s')
----
return struct.size('> < !4 B')
----
return struct.size('z')
----
return struct.size('%')
----
return struct.size('')
----
return struct.size()
----
return struct.size('i33')
----
return struct.size('!3')
----
return struct.size('a')
----
return struct.size('c2147483647')
----
return struct.size('c2147483648')
----
return struct.nope
