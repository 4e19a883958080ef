return bit.tobit(4294967295)
----
return bit.tobit(-1)
----
return bit.tobit(2^31)
----
return bit.tobit(2^40+5)
----
return bit.tobit(1.5)
----
return bit.tobit(2.5)
----
return bit.tobit(-1.5)
----
return bit.tobit('12')
----
return bit.tobit('x')
----
return bit.tobit()
----
return bit.tobit({})
----
return bit.tobit(0/0)
----
return bit.tobit(1/0)
----
return bit.tobit(2^52)
----
return bit.tobit(2^51+3)
----
return bit.tobit(-2^51-3)
----
return bit.tobit(1e300)
----
return bit.bnot(0)
----
return bit.bnot(12345)
----
return bit.band(12,10)
----
return bit.band(12)
----
return bit.band(255,15,7,3)
----
return bit.band()
----
return bit.band(1,'x')
----
return bit.bor(1,2,4)
----
return bit.bor(2^31)
----
return bit.bxor(255,15)
----
return bit.bxor(1,1)
----
return bit.lshift(1,4)
----
return bit.lshift(1,32)
----
return bit.lshift(1,33)
----
return bit.lshift(1,-1)
----
return bit.rshift(-1,4)
----
return bit.rshift(256,8)
----
return bit.arshift(-256,4)
----
return bit.arshift(-256,36)
----
return bit.rol(0x12345678,12)
----
return bit.ror(0x12345678,12)
----
return bit.rol(1,0)
----
return bit.lshift(1)
----
return bit.bswap(0x12345678)
----
return bit.bswap(1)
----
return bit.tohex(1)
----
return bit.tohex(-1)
----
return bit.tohex(255,4)
----
return bit.tohex(255,-4)
----
return bit.tohex(0xabcdef,-8)
----
return bit.tohex(1,0)
----
return bit.tohex(1,20)
----
return bit.tohex(1,-20)
----
return bit.tohex(1,nil)
----
return bit.tohex(1,'2')
----
return bit.tohex()
----
return bit.nope
----
return {bit.tohex(-1, -2147483648), bit.tohex(-1, 2147483647), bit.tohex(-1, -9), bit.tohex(-1, 0)}
